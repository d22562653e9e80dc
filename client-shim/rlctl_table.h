/*
 * Tables of a document's lists, one row for each entry, and fields of the
 * document as text. Whatever an agent says, a cell is bounded, and no control
 * character reaches the terminal.
 */
#ifndef RLCTL_TABLE_H
#define RLCTL_TABLE_H

#include <stddef.h>

struct json_t;

#define RLCTL_TABLE_WIDTH 118 /* characters of a row, where it can be */
/* Bytes of a field as text: names are the longest, 255 of them. */
#define RLCTL_TABLE_CELL 256
#define RLCTL_TABLE_MAX  13 /* columns */

struct rlctl_column {
	const char *title;
	int right; /* aligned */
};

/* Fills a cell for each column. */
typedef void rlctl_table_row(
    char cell[][RLCTL_TABLE_CELL], const struct json_t *entry);

/* To stdout; rows is an array. */
void rlctl_table_print(const struct rlctl_column *columns, int count,
    const struct json_t *rows, rlctl_table_row *make);

/* Fields of an object; "-", 0 and false for what it lacks. */
const char *rlctl_table_text(const struct json_t *from, const char *name);
long long rlctl_table_number(const struct json_t *from, const char *name);
int rlctl_table_known(const struct json_t *from, const char *name);

/* What is longer than a cell ends in "...". */
void rlctl_table_put(char out[RLCTL_TABLE_CELL], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Text of at most max characters; a longer one is cut and ends in "...". */
void rlctl_table_put_short(
    char out[RLCTL_TABLE_CELL], const char *text, int max);
/* A count, exact while it is short; "-" for null. */
void rlctl_table_put_count(
    char out[RLCTL_TABLE_CELL], const struct json_t *from, const char *name);

/* Characters of UTF-8, as many as are printed. */
int rlctl_table_width(const char *text, size_t len);

#endif
