# man/: mdoc pages, checked by mandoc -T lint in make check.

dist_man_MANS = \
	man/rl-agent-metrics.7 \
	man/rl-agent.8 \
	man/rl-agent-gateway.7 \
	man/rl-agent.json.5 \
	man/rl-sandbox.1 \
	man/rlctl.1 \
	man/rlshim.3
