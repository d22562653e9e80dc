/*
 * The nameservers of resolv.conf(5). The file is read afresh each time, since
 * whoever manages the network replaces it at will; nothing here can block on
 * it or grow with it.
 */
#include "daemon/io/resolvconf.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/io/address.h"

#define DNS_PORT 53
#define BLANKS   " \t\r"
/* Enough for the longest server; what a longer line has is a remark. */
#define LINE_MAX_LEN 255

/*
 * The keyword must begin the line, which is also what makes '#' and ';' in
 * the first column a comment. What follows the address is ignored.
 */
static bool
parse_line(const char *line, size_t len, struct endpoint *out)
{
	static const char keyword[] = "nameserver";
	char text[LINE_MAX_LEN + 1], *word = text + sizeof keyword - 1;

	if (len > LINE_MAX_LEN)
		len = LINE_MAX_LEN;
	memcpy(text, line, len);
	text[len] = '\0';
	if (strncmp(text, keyword, sizeof keyword - 1) != 0 ||
	    strspn(word, BLANKS) == 0)
		return false;
	word += strspn(word, BLANKS);
	word[strcspn(word, BLANKS)] = '\0';
	return address_parse(word, DNS_PORT, out);
}

size_t
resolvconf_parse(
    const char *text, size_t len, struct endpoint out[RESOLVCONF_MAX])
{
	const char *end = text + len, *eol;
	size_t count = 0;

	for (; text < end && count < RESOLVCONF_MAX; text = eol + 1) {
		eol = memchr(text, '\n', (size_t)(end - text));
		if (eol == NULL)
			eol = end;
		count += parse_line(text, (size_t)(eol - text), &out[count]);
	}
	return count;
}

static void
stamp_set(struct resolvconf_stamp *stamp, const struct stat *st)
{
	*stamp = (struct resolvconf_stamp){0};
	if (!S_ISREG(st->st_mode))
		return;
	stamp->dev = st->st_dev;
	stamp->ino = st->st_ino;
	stamp->size = st->st_size;
	stamp->modified = st->st_mtim;
	stamp->changed = st->st_ctim;
}

/*
 * At most cap bytes of a regular file; 0 when there is none. The stamp is
 * taken first: what is written meanwhile makes another one.
 */
static size_t
read_file(
    const char *path, char *buf, size_t cap, struct resolvconf_stamp *stamp)
{
	size_t used = 0;
	struct stat st = {0};
	ssize_t n;
	/* Not blocking: a FIFO in its place must not stop the loop. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		stamp_set(stamp, &st);
		return 0;
	}
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		while (used < cap && (n = read(fd, buf + used, cap - used)) > 0)
			used += (size_t)n;
	}
	stamp_set(stamp, &st);
	close(fd);
	return used;
}

size_t
resolvconf_read(const char *path, struct endpoint out[RESOLVCONF_MAX],
    struct resolvconf_stamp *stamp)
{
	static const struct endpoint local = {
	    .family = 4, .addr = {127, 0, 0, 1}, .port = DNS_PORT};
	char *text = malloc(RESOLVCONF_SIZE);
	size_t count = 0;

	*stamp = (struct resolvconf_stamp){0};
	if (text != NULL)
		count = resolvconf_parse(
		    text, read_file(path, text, RESOLVCONF_SIZE, stamp), out);
	free(text);
	stamp->named = count > 0;
	if (count > 0)
		return count;
	out[0] = local;
	return 1;
}

static bool
same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool
resolvconf_changed(const char *path, const struct resolvconf_stamp *since)
{
	struct resolvconf_stamp now;
	struct stat st = {0};

	if (stat(path, &st) != 0)
		st = (struct stat){0};
	stamp_set(&now, &st);
	return now.dev != since->dev || now.ino != since->ino ||
	       now.size != since->size ||
	       !same_time(now.modified, since->modified) ||
	       !same_time(now.changed, since->changed);
}
