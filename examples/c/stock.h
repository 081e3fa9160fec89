// The shop's stock, in a folder that all sellers see: two text files that know nothing of locks.
// `stock` says LEFT NEWEST: how many are left, and the highest token that has written. `sales` has a
// line for each sale, SELLER TOKEN FROM TO, with times in microseconds.
#ifndef STOCK_H
#define STOCK_H

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum stock_deed { STOCK_EMPTY, STOCK_SOLD, STOCK_REFUSED };

static inline _Noreturn void stock_give_up(const char *file) {
    perror(file);
    exit(1);
}

static inline uint64_t stock_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static inline void stock_read(const char *folder, int *left, uint64_t *newest) {
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/stock", folder);
    FILE *stock = fopen(file, "r");
    if (stock == NULL || fscanf(stock, "%d %" SCNu64, left, newest) != 2) stock_give_up(file);
    fclose(stock);
}

// In one step, so that nobody reads half of it.
static inline void stock_write(const char *folder, int left, uint64_t newest) {
    char file[PATH_MAX], next[PATH_MAX];
    snprintf(file, sizeof file, "%s/stock", folder);
    snprintf(next, sizeof next, "%s/stock.%d", folder, (int)getpid());
    FILE *stock = fopen(next, "w");
    if (stock == NULL || fprintf(stock, "%d %" PRIu64 "\n", left, newest) < 0) stock_give_up(next);
    if (fclose(stock) != 0 || rename(next, file) != 0) stock_give_up(file);
}

static inline void stock_append(const char *folder, const char *seller, uint64_t token, uint64_t from) {
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/sales", folder);
    int sales = open(file, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (sales < 0 || dprintf(sales, "%s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", seller, token, from,
                             stock_clock()) < 0)
        stock_give_up(file);
    close(sales);
}

// Sells one: reads, thinks for so long, writes. `token` is 0 when there is no lock; one below the
// highest that has written is refused.
static inline enum stock_deed stock_sell(const char *folder, const char *seller, uint64_t token,
                                         long think_ns) {
    uint64_t from = stock_clock(), newest = 0;
    int left = 0, now = 0;
    stock_read(folder, &left, &newest);
    if (left == 0) return STOCK_EMPTY;
    struct timespec moment = {0, think_ns};
    nanosleep(&moment, NULL); // the customer pays; others read the same number, if they can
    stock_read(folder, &now, &newest);
    if (token < newest) return STOCK_REFUSED;
    stock_append(folder, seller, token, from);
    stock_write(folder, left - 1, token);
    return STOCK_SOLD;
}

// How many were sold.
static inline int stock_sold(const char *folder) {
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/sales", folder);
    FILE *sales = fopen(file, "r");
    if (sales == NULL) return 0;
    int lines = 0;
    for (int c; (c = fgetc(sales)) != EOF;) lines += c == '\n';
    fclose(sales);
    return lines;
}

#endif
