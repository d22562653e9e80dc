/*
 * Anonymous private pages under MADV_WIPEONFORK. The kernel does the wiping,
 * so a fork that no handler of ours sees (clone, vfork with a copied space, a
 * library's own fork) is covered as well; comparing getpid() would not be.
 */
#include "proto/forkpage.h"

#include <openssl/crypto.h>
#include <sys/mman.h>

void *
forkpage_new(size_t len)
{
	void *page = mmap(NULL, len, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, len, MADV_WIPEONFORK) != 0) {
		munmap(page, len);
		return NULL;
	}
	return page;
}

void
forkpage_free(void *page, size_t len)
{
	if (page == NULL)
		return;
	OPENSSL_cleanse(page, len);
	munmap(page, len);
}
