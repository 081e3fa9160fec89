// What the tests of the C ABI are written with.
#ifndef CHECK_H
#define CHECK_H

#include <fencelock.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Ends the program, saying where.
_Noreturn void fail(const char *file, int line, const char *what, const char *detail);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) fail(__FILE__, __LINE__, #condition, "");                                \
    } while (0)

// A call that takes an error last, and must give FENCELOCK_OK: OK(fencelock_connect, url, …).
#define OK(function, ...)                                                                          \
    do {                                                                                           \
        fencelock_error *error_ = (fencelock_error *)1;                                            \
        if (function(__VA_ARGS__, &error_) != FENCELOCK_OK)                                        \
            fail(__FILE__, __LINE__, #function, fencelock_error_message(error_));                  \
        CHECK(error_ == NULL);                                                                     \
    } while (0)

// A call that takes an error last, and must give this status and an error that says the same.
#define FAILS(status_, function, ...)                                                              \
    do {                                                                                           \
        fencelock_error *error_ = NULL;                                                            \
        fencelock_status got_ = function(__VA_ARGS__, &error_);                                    \
        if (got_ != (status_))                                                                     \
            fail(__FILE__, __LINE__, #function " -> " #status_, fencelock_status_name(got_));      \
        check_error(__FILE__, __LINE__, error_, got_);                                             \
    } while (0)

// A call without an error object, and its status.
#define IS(status_, call_)                                                                         \
    do {                                                                                           \
        fencelock_status got_ = (call_);                                                           \
        if (got_ != (status_))                                                                     \
            fail(__FILE__, __LINE__, #call_ " -> " #status_, fencelock_status_name(got_));         \
    } while (0)

// Looks at an error object and frees it.
void check_error(const char *file, int line, fencelock_error *error, fencelock_status status);

// Waits until a condition holds, at most 30 s.
#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        time_t until_ = time(NULL) + 30;                                                           \
        while (!(condition)) {                                                                     \
            if (time(NULL) > until_) fail(__FILE__, __LINE__, "never: " #condition, "");           \
            struct timespec moment_ = {0, 1000000};                                                \
            nanosleep(&moment_, NULL);                                                             \
        }                                                                                          \
    } while (0)

#define BOUND (30 * FENCELOCK_SECOND)

// The store under test, from the command line.
extern const char *store;

// A client of the store, with the default options.
fencelock_client *client_of_store(void);

// What the client's store can do.
fencelock_capabilities capabilities_of(fencelock_client *client);

// A name that no other test uses, valid until the next call in this thread.
const char *name_of(const char *stem);

// A client and one of its locks, and their end.
struct pair {
    fencelock_client *client;
    fencelock_lock *lock;
};
struct pair open_pair(const char *stem);
void close_pair(struct pair pair);

// Options for an owner of its own kind, waiting for `timeout_ns`.
fencelock_acquire_options fresh(int64_t timeout_ns);
fencelock_acquire_options local(uint64_t number, int64_t timeout_ns);
fencelock_acquire_options explicitly(const char *owner, int64_t timeout_ns);

fencelock_hold *acquire(fencelock_lock *lock, fencelock_acquire_options options);
uint64_t token_of(fencelock_hold *hold);

// Where a callback puts a completion, and how to wait for it.
struct mail {
    atomic_int count;
    fencelock_completion last;
    pthread_t thread;
};
void post(const fencelock_completion *completion, void *mail);
fencelock_completion collect(struct mail *mail);

// A thread that waits for a lock, or to enter it, in vain: `wait_for_it` is what it runs.
struct waiting {
    fencelock_lock *lock;
    fencelock_cancel *cancel;
    int64_t timeout_ns;
    bool enter;
    atomic_int ended;
    fencelock_status status;
};
void *wait_for_it(void *waiting);

// How many of the client's calls wait.
uint64_t waiters(fencelock_client *client);

struct test {
    const char *name;
    void (*run)(void);
};

// Each file's tests; the last has no name.
extern const struct test api_tests[], misuse_tests[], async_tests[], cancel_tests[], close_tests[],
    enter_tests[], fork_tests[], thread_tests[], mode_tests[];

// Holds two of a semaphore's three permits, until the process is killed: `abi-test URL --holds NAME`.
int hold_permits(const char *name);

#endif
