# debian/: the packages, made by dpkg-buildpackage, tried by tests/packages.

EXTRA_DIST += \
	debian/changelog \
	debian/control \
	debian/copyright \
	debian/librlshim-dev.examples \
	debian/librlshim-dev.install \
	debian/librlshim0.install \
	debian/librlshim0.symbols \
	debian/not-installed \
	debian/rl-agent.README.Debian \
	debian/rl-agent.dirs \
	debian/rl-agent.docs \
	debian/rl-agent.examples \
	debian/rl-agent.install \
	debian/rl-agent.postinst \
	debian/rl-agent.postrm \
	debian/rl-agent.prerm \
	debian/rl-sandbox.install \
	debian/rlctl.install \
	debian/rules \
	debian/source/format \
	debian/tests/control \
	debian/tests/decisions \
	debian/tests/lab \
	debian/tests/library
