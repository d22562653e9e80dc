# systemd/: the service, its sockets for those who want them passed, its user,
# and the directory of the sockets, which tmpfiles makes: it must outlive the
# service.

EXTRA_DIST += \
	systemd/rl-agent-control.socket.in \
	systemd/rl-agent-gateway@.socket.in \
	systemd/rl-agent.service.in \
	systemd/rl-agent.socket.in \
	systemd/rl-agent.sysusers.conf \
	systemd/rl-agent.tmpfiles.conf

if SYSTEMD_UNITS
systemdsystemunit_DATA = \
	systemd/rl-agent-control.socket \
	systemd/rl-agent-gateway@.socket \
	systemd/rl-agent.service \
	systemd/rl-agent.socket
BUILT_FILES += $(systemdsystemunit_DATA)

install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(prefix)/lib/sysusers.d' \
		'$(DESTDIR)$(prefix)/lib/tmpfiles.d'
	$(INSTALL_DATA) $(srcdir)/systemd/rl-agent.sysusers.conf \
		'$(DESTDIR)$(prefix)/lib/sysusers.d/rl-agent.conf'
	$(INSTALL_DATA) $(srcdir)/systemd/rl-agent.tmpfiles.conf \
		'$(DESTDIR)$(prefix)/lib/tmpfiles.d/rl-agent.conf'

uninstall-local:
	rm -f '$(DESTDIR)$(prefix)/lib/sysusers.d/rl-agent.conf' \
		'$(DESTDIR)$(prefix)/lib/tmpfiles.d/rl-agent.conf'
endif

# At make time, since these hold ${prefix} or ${exec_prefix} until then.
RENDER_UNIT = $(AM_V_GEN)$(MKDIR_P) systemd && $(SED) \
	-e 's|@bindir[@]|$(bindir)|g' \
	-e 's|@sbindir[@]|$(sbindir)|g' \
	-e 's|@sysconfdir[@]|$(sysconfdir)|g' \
	$(srcdir)/$@.in > $@.new && mv $@.new $@

systemd/rl-agent-control.socket: \
		$(srcdir)/systemd/rl-agent-control.socket.in Makefile
	$(RENDER_UNIT)
systemd/rl-agent-gateway@.socket: \
		$(srcdir)/systemd/rl-agent-gateway@.socket.in Makefile
	$(RENDER_UNIT)
systemd/rl-agent.service: $(srcdir)/systemd/rl-agent.service.in Makefile
	$(RENDER_UNIT)
systemd/rl-agent.socket: $(srcdir)/systemd/rl-agent.socket.in Makefile
	$(RENDER_UNIT)
