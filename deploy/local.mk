# deploy/: examples of how the agent is run. Nothing here is installed; the
# tests read and run these files.

EXTRA_DIST += \
	.dockerignore \
	deploy/.yamllint \
	deploy/Dockerfile \
	deploy/README.md \
	deploy/compose \
	deploy/compose.yaml \
	deploy/kubernetes/daemonset.yaml \
	deploy/kubernetes/sidecar.yaml \
	deploy/prometheus \
	deploy/proxies
