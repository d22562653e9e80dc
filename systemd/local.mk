# systemd/: the service, its user, and the directory of its sockets, which
# tmpfiles makes: it must outlive the service.

EXTRA_DIST += \
	systemd/rl-agent.service.in \
	systemd/rl-agent.sysusers.conf \
	systemd/rl-agent.tmpfiles.conf

if SYSTEMD_UNITS
systemdsystemunit_DATA = systemd/rl-agent.service
BUILT_FILES += systemd/rl-agent.service

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

# At make time, since sbindir holds ${exec_prefix} until then.
systemd/rl-agent.service: $(srcdir)/systemd/rl-agent.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && $(SED) \
		-e 's|@sbindir[@]|$(sbindir)|g' \
		-e 's|@sysconfdir[@]|$(sysconfdir)|g' \
		$(srcdir)/systemd/rl-agent.service.in > $@.new && mv $@.new $@
