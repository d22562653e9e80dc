# proto/: bytes only. libipc is the half that needs nothing but libc, libproto
# the half that speaks to r-servers (OpenSSL).

noinst_LIBRARIES += proto/libipc.a proto/libproto.a

proto_libipc_a_SOURCES = \
	proto/err.c proto/err.h \
	proto/ipc.c proto/ipc_dec.c proto/ipc_enc.c proto/ipc.h \
	proto/reader.c proto/reader.h \
	proto/writer.c proto/writer.h

proto_libproto_a_SOURCES = \
	proto/aesgcm.c proto/aesgcm.h \
	proto/bech32.c proto/bech32.h \
	proto/blake2s.c proto/blake2s.h \
	proto/credential.c proto/credential.h \
	proto/forkpage.c proto/forkpage.h \
	proto/id.c proto/id.h \
	proto/nonce.c proto/nonce.h \
	proto/packet.c proto/packet.h \
	proto/pdu.c proto/pdu.h \
	proto/provider.c proto/provider.h \
	proto/random.c proto/random.h
proto_libproto_a_CFLAGS = $(AM_CFLAGS) $(CRYPTO_CFLAGS)

# In the order of linking.
PROTO_LIBS = proto/libproto.a proto/libipc.a

EXTRA_DIST += proto/IPC.md proto/vectors/ipc.json
