/*
 * Fencelock: distributed locks with fencing tokens, fair hand-off and watchdogs.
 *
 *     fencelock_client *client;
 *     fencelock_lock *lock;
 *     fencelock_hold *hold;
 *     fencelock_error *error;
 *     if (fencelock_connect("redis://localhost", FENCELOCK_NTS, NULL, &client, &error) ||
 *         fencelock_client_lock(client, "stock/coupon-7", FENCELOCK_NTS, &lock, &error) ||
 *         fencelock_lock_acquire(lock, NULL, &hold, &error)) {
 *         fprintf(stderr, "%s\n", fencelock_error_message(error));
 *         return 1;
 *     }
 *     uint64_t token;
 *     fencelock_hold_token(hold, &token);      // send it along with every write
 *     ...
 *     fencelock_hold_release(hold, &error);    // FENCELOCK_LOST if the lease ended meanwhile
 *
 * Handles. A pointer to one of the opaque types is a handle: a number in a table, never an address.
 * One that is NULL, was freed, is of another kind or made up gives FENCELOCK_INVALID_ARGUMENT, and
 * does no harm. Each is freed once, by the function that its type names; freeing NULL does nothing.
 * A handle may be used by any number of threads at once, and be freed while others use it: their
 * calls go on to their end.
 *
 * Errors. Every call returns a status, FENCELOCK_OK or what went wrong. The last parameter of most,
 * `error`, takes an error object with a message; it may be NULL. *error is NULL after a call that
 * succeeded, and otherwise the caller's to free. Other out parameters are NULL or 0 after a call that
 * failed, and unless said otherwise may not be NULL.
 *
 * Text is UTF-8 with a length in bytes, or FENCELOCK_NTS in its place when it ends with NUL. What is
 * passed in is copied, or not used after the call. NULL, with length 0, is no text.
 *
 * Structures begin with their size, so that they can grow: initialise those that you fill in with
 * their _INIT, and set `size` in the others.
 *
 * Threads. Every function may be called by any thread, and those of clients, locks and holds that are there
 * already also in the destructors of a thread that ends: connect, and wait for callbacks, before.
 * Those that end with _async return at once, as do those that say they ask the store nothing; the others
 * block. pthread_cancel() ends a thread after such a call, never within it.
 *
 * Callbacks run on one thread of the library, "fencelock-callbacks", one after the other, never
 * within the call that asked for them. They may call whatever does not block; one that blocks delays
 * those behind it. They must not throw or longjmp. An asynchronous call that returns FENCELOCK_OK
 * calls back exactly once, also when it is cancelled or the client is closed; with one exception:
 * when it was given `now`, and now->ended is true on its return, the call has ended already, its
 * completion is in *now, and the callback is not called. One that returns anything else did not
 * begin, and does not call back. Where there is an `operation`, it may be NULL; it receives a handle
 * that cancels, or NULL when the call has ended.
 *
 * Fork. A child has none of its parent's holds: there, the parent's clients answer FENCELOCK_CLOSED
 * and its holds are not valid, and freeing them does not disturb the parent. Connect anew in the
 * child. Fork while no other thread is in the middle of a call.
 *
 * Signals. In a signal handler only fencelock_cancel_signal() may be called, and it must not longjmp out
 * of a call. The library's threads block the signals that the thread blocks whose call starts them: block
 * before you connect what another thread is to take by sigwait().
 */


#ifndef FENCELOCK_H
#define FENCELOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FENCELOCK_VERSION_MAJOR 0
#define FENCELOCK_VERSION_MINOR 1
#define FENCELOCK_VERSION_PATCH 0

/* In place of a text's length: it ends with NUL. */
#define FENCELOCK_NTS SIZE_MAX

/* Times are in nanoseconds: 30 * FENCELOCK_SECOND. */
#define FENCELOCK_MICROSECOND INT64_C(1000)
#define FENCELOCK_MILLISECOND INT64_C(1000000)
#define FENCELOCK_SECOND INT64_C(1000000000)

/* How long to wait: not at all; as long as it takes. */
#define FENCELOCK_TRY INT64_C(0)
#define FENCELOCK_FOREVER INT64_C(-1)

/* What the structures that a caller fills in begin as. */
#define FENCELOCK_CONNECT_OPTIONS_INIT \
    { sizeof(fencelock_connect_options), 0, 0, 0, 0, 0, 0, 0, NULL, 0, NULL, 0 }
#define FENCELOCK_ACQUIRE_OPTIONS_INIT \
    { sizeof(fencelock_acquire_options), FENCELOCK_FOREVER, 0, 0, 0, FENCELOCK_OWNER_THREAD, 0, \
      NULL, 0, NULL, 0 }
#define FENCELOCK_COMPLETION_INIT \
    { sizeof(fencelock_completion), false, FENCELOCK_OK, NULL, NULL, NULL, NULL, NULL, 0, 0 }


// The version of the ABI that this header describes: it changes when a program must be compiled
// anew.
#define FENCELOCK_ABI_VERSION 1

// The calling thread owns the hold, and re-enters.
#define FENCELOCK_OWNER_THREAD 0

// A thread or task of the program, known by owner_number (62 bits), owns the hold, and re-enters.
// The number means nothing outside the client.
#define FENCELOCK_OWNER_LOCAL 1

// Every acquisition is its own: acquiring again waits, also in the same thread.
#define FENCELOCK_OWNER_FRESH 2

// Whoever shows the text in `owner` re-enters, from any process or language.
#define FENCELOCK_OWNER_EXPLICIT 3

// What cancels blocking waits. Freed by fencelock_cancel_free().
typedef struct fencelock_cancel fencelock_cancel;

// A connection to a store. Freed by fencelock_client_free().
typedef struct fencelock_client fencelock_client;

// What went wrong. Freed by fencelock_error_free().
typedef struct fencelock_error fencelock_error;

// A held lock, or permits of a semaphore. Freed by fencelock_hold_release() or fencelock_hold_free().
typedef struct fencelock_hold fencelock_hold;

// The state of a lock at one moment. Freed by fencelock_inspection_free().
typedef struct fencelock_inspection fencelock_inspection;

// The name of a lock on a client's store: made once, used often. Freed by fencelock_lock_free().
typedef struct fencelock_lock fencelock_lock;

// Names of locks. Freed by fencelock_names_free().
typedef struct fencelock_names fencelock_names;

// An asynchronous call. Freed by fencelock_operation_free().
typedef struct fencelock_operation fencelock_operation;

// The name of a read-write lock on a client's store. Freed by fencelock_rwlock_free().
typedef struct fencelock_rwlock fencelock_rwlock;

// The name of a semaphore on a client's store, and the number of its permits. Freed by
// fencelock_semaphore_free().
typedef struct fencelock_semaphore fencelock_semaphore;

// A text that the library made. Freed by fencelock_text_free().
typedef struct fencelock_text fencelock_text;

// What a call returns. 1 to 11 are the numbers of the errors in every language; none is ever
// reused. fencelock_status_name() gives the name.
typedef int32_t fencelock_status;

// A text that belongs to the library: `length` bytes of UTF-8, and a NUL behind them that is not
// counted. `data` is NULL where there is none.
typedef struct fencelock_string {
    // The bytes.
    const char *data;
    // How many.
    size_t length;
} fencelock_string;

// What an error says; see fencelock_error_get().
typedef struct fencelock_error_info {
    // sizeof(fencelock_error_info); to be set by the caller.
    size_t size;
    // The number that the call returned.
    fencelock_status code;
    // Whether the same call may succeed later without anybody changing anything.
    bool retryable;
    // The error's name in every language, such as "timed_out". Never freed.
    struct fencelock_string name;
    // What happened and what to do, for a person. Valid until the error is freed.
    struct fencelock_string message;
} fencelock_error_info;

// Options of a client, to be initialised with FENCELOCK_CONNECT_OPTIONS_INIT. What is 0 or NULL is
// as the URL says, or else the default.
typedef struct fencelock_connect_options {
    // sizeof(fencelock_connect_options).
    size_t size;
    // The lease of holds without an explicit one, renewed at a third of it: 100 ms to 7 days, 30 s
    // by default. Shorter: a crashed holder's lock is free earlier. Longer: a holder survives a
    // longer outage of the store.
    int64_t lease_ns;
    // The lease of a hold that was handed to a waiter, until the waiter is heard from: 100 ms to
    // 60 s, 3 s by default. It bounds how long a waiter that died delays the ones behind it.
    int64_t claim_ns;
    // How long a request may go unanswered; also the bound of a try, a release and every other call
    // that has no bound of its own. At least 10 ms, 3 s by default.
    int64_t request_timeout_ns;
    // How long connecting may take: 5 s by default.
    int64_t connect_timeout_ns;
    // For how long a released lock may pass to waiters of this client without asking the store
    // while another client waits: 10 ms by default.
    int64_t local_run_time_ns;
    // How many times in a row it may: 64 by default. -1: never.
    int64_t local_run_grants;
    // How many acquires may wait at a time in this client: 1,000,000 by default.
    int64_t max_waiters;
    // A label for people, shown beside the client's id wherever holders are listed: at most 128
    // bytes.
    const char *label;
    // Its length in bytes, or FENCELOCK_NTS.
    size_t label_length;
    // Redis: what every key begins with, "fl:" by default. Clients must agree on it to share locks.
    const char *key_prefix;
    // Its length in bytes, or FENCELOCK_NTS.
    size_t key_prefix_length;
} fencelock_connect_options;

// How an asynchronous call ended. What it carries is the receiver's to free.
typedef struct fencelock_completion {
    // sizeof(fencelock_completion); in `now`, to be set by the caller.
    size_t size;
    // In `now`: whether the call has ended already, so that the callback will not be called.
    bool ended;
    // What the blocking call would have returned.
    fencelock_status status;
    // NULL when status is FENCELOCK_OK.
    struct fencelock_error *error;
    // Of fencelock_connect_async().
    struct fencelock_client *client;
    // Of fencelock_client_attach_async(), and of all that acquire without blocking.
    struct fencelock_hold *hold;
    // Of fencelock_client_list_async().
    struct fencelock_names *names;
    // Of fencelock_client_inspect_async(); NULL: the store knows nothing of the lock.
    struct fencelock_inspection *inspection;
    // The token that was entered with, how many holds were broken, the store's time in nanoseconds
    // since 1970, whether the lock is held, how many permits are free, or whether a semaphore
    // was resized.
    uint64_t number;
    // Of fencelock_client_break_async(): the token under which somebody else holds the lock now, or 0.
    uint64_t changed_hands;
} fencelock_completion;

// Takes the end of an asynchronous call: exactly once, on the callback thread. What `completion`
// carries is the receiver's to free; `completion` itself is gone when the function returns. It must
// not throw.
typedef void (*fencelock_callback)(const struct fencelock_completion *completion, void *user_data);

// Counters of a client since it was made; see fencelock_client_counters().
typedef struct fencelock_counters {
    // sizeof(fencelock_counters); to be set by the caller.
    size_t size;
    // Holds granted.
    uint64_t grants;
    // Of these, as re-entries; entering again is not among them.
    uint64_t grants_reentry;
    // Of these, passed from another holder in this client without asking the store.
    uint64_t grants_local;
    // Holds that ended before their release.
    uint64_t losses;
    // Holds renewed, each renewal of each hold counted.
    uint64_t renewals;
    // Renewals that failed and were tried again.
    uint64_t renewal_failures;
    // Connections that were lost.
    uint64_t reconnects;
    // Acquires that wait at this moment.
    uint64_t waiting;
} fencelock_counters;

// What a store can and cannot do; see fencelock_client_capabilities().
typedef struct fencelock_capabilities {
    // sizeof(fencelock_capabilities); to be set by the caller.
    size_t size;
    // The store's name, such as "redis". Never freed.
    struct fencelock_string store;
    // Several processes may share it.
    bool processes;
    // Locks survive the end of every client.
    bool durable;
    // Explicit owners re-enter from another client.
    bool owners;
    // Explicit leases end at the store by themselves.
    bool leases;
    // fencelock_hold_previous_abandoned() is known.
    bool abandoned;
    // Names of locks are paths: slashes separate, no part is empty, and a lock does not lie below
    // another.
    bool paths;
    // It has read-write locks; see fencelock_client_rwlock().
    bool shared;
    // It has semaphores; see fencelock_client_semaphore().
    bool permits;
} fencelock_capabilities;

// How to acquire, to be initialised with FENCELOCK_ACQUIRE_OPTIONS_INIT: for the calling thread,
// waiting as long as it takes.
typedef struct fencelock_acquire_options {
    // sizeof(fencelock_acquire_options).
    size_t size;
    // How long to wait for others: FENCELOCK_TRY, FENCELOCK_FOREVER, or a bound.
    int64_t timeout_ns;
    // 0: the client's lease, renewed until the release. Otherwise the hold ends after so long and
    // is not renewed: 100 ms to 7 days.
    int64_t lease_ns;
    // A ceiling over the renewal, counted from the grant: guards against a holder that hangs. 0:
    // none.
    int64_t max_hold_ns;
    // With FENCELOCK_OWNER_LOCAL.
    uint64_t owner_number;
    // FENCELOCK_OWNER_THREAD, _LOCAL, _FRESH or _EXPLICIT.
    uint32_t owner_kind;
    // 0.
    uint32_t reserved;
    // With FENCELOCK_OWNER_EXPLICIT: 1 to 256 bytes of UTF-8.
    const char *owner;
    // Its length in bytes, or FENCELOCK_NTS.
    size_t owner_length;
    // What cancels the wait, or NULL; for calls that block.
    struct fencelock_cancel *cancel;
    // With fencelock_lock_acquire_async(): for how long the calling thread may wait, and drive the
    // connection, before the call goes on without it; what ends in that time ends in `now`. 0: it does
    // not wait.
    int64_t block_ns;
} fencelock_acquire_options;

// Whether the previous holder was lost instead of releasing: what the lock protects may then be
// half done.
typedef int32_t fencelock_abandoned;

// Why a hold ended before its release.
typedef int32_t fencelock_loss;

// Takes the news that a hold was lost, on the callback thread.
typedef void (*fencelock_lost_callback)(fencelock_loss reason, void *user_data);

// Frees `user_data`: once, on the callback thread, when it will not be used any more.
typedef void (*fencelock_destroy)(void *user_data);

// Takes the news that another client waits for a hold's lock, on the callback thread.
typedef void (*fencelock_wanted_callback)(void *user_data);

// How a hold shares the lock with others.
typedef int32_t fencelock_mode;

// A lock at one moment. What it refers to is valid until the inspection is freed.
typedef struct fencelock_lock_info {
    // sizeof(fencelock_lock_info); to be set by the caller.
    size_t size;
    // The lock's name.
    struct fencelock_string name;
    // The explicit owner of the holds; data is NULL when they have none, and while readers have the
    // lock.
    struct fencelock_string owner;
    // The token of the holds, the highest of them where each has its own; or 0.
    uint64_t token;
    // The highest token reserved so far.
    uint64_t last_token;
    // What the next holder will be told of its predecessor.
    fencelock_abandoned abandoned;
    // How many holds there are: none when the lock is free, several when an explicit owner has
    // re-entered, and of readers and of a semaphore.
    size_t hold_count;
    // How many waiters may be read: who stands in the queue, an entry for each client, 256 at the
    // most.
    size_t waiter_count;
    // How many wait in all: the whole queue, and who waits within the clients of the holds and
    // waiters that are shown, as far as that is known.
    size_t waiting;
} fencelock_lock_info;

// A hold at one moment.
typedef struct fencelock_hold_info {
    // sizeof(fencelock_hold_info); to be set by the caller.
    size_t size;
    // Its id.
    struct fencelock_string id;
    // Its client's id.
    struct fencelock_string client;
    // Its client's label.
    struct fencelock_string label;
    // What is left of the lease.
    int64_t expires_in_ns;
    // The lease that this counts from.
    int64_t lease_ns;
    // It was handed over, and its holder was not heard from yet.
    bool claim;
    // How many wait within its client, which hands the lock on among them, as that said with its
    // latest acquire or renewal: up to a third of a lease old, and 65,535 at the most; exact for the
    // client that asks. -1 where it is unknown (ZooKeeper).
    int64_t local_waiters;
    // Its token.
    uint64_t token;
    // Its explicit owner; data is NULL when it has none.
    struct fencelock_string owner;
    // How it shares the lock.
    fencelock_mode mode;
    // How many permits it has; 0 of a lock.
    uint32_t permits;
    // How many permits there are, as it was said when it was acquired; 0 of a lock.
    uint32_t of;
} fencelock_hold_info;

// A waiter at one moment.
typedef struct fencelock_waiter_info {
    // sizeof(fencelock_waiter_info); to be set by the caller.
    size_t size;
    // The id that its hold will have.
    struct fencelock_string id;
    // Its client's id.
    struct fencelock_string client;
    // Its client's label.
    struct fencelock_string label;
    // Its explicit owner; data is NULL when it has none.
    struct fencelock_string owner;
    // How long ago it was heard from.
    int64_t heard_ago_ns;
    // Whether it would be passed over now.
    bool silent;
    // How many more wait within its client, as for a hold.
    int64_t local_waiters;
    // How it wants to share the lock.
    fencelock_mode mode;
    // How many permits it wants; 0 of a lock.
    uint32_t permits;
} fencelock_waiter_info;

// Done.
#define FENCELOCK_OK 0

// Another holder has the lock, or waits for it, and the caller did not want to wait.
#define FENCELOCK_CONTENDED 1

// The wait's bound passed while others held the lock.
#define FENCELOCK_TIMED_OUT 2

// The wait was cancelled by its caller.
#define FENCELOCK_CANCELLED 3

// The store could not be reached, or did not answer, within the call's bound.
#define FENCELOCK_UNAVAILABLE 4

// The hold ended before its release: its lease ran out, or it was broken.
#define FENCELOCK_LOST 5

// The caller does not hold the lock, or released it before.
#define FENCELOCK_NOT_HELD 6

// The store refuses for a reason that only an operator can mend.
#define FENCELOCK_MISCONFIGURED 7

// An argument is out of its range. Also: NULL where something is needed, a handle that was freed or
// is of another kind, text that is not UTF-8, a structure without its size.
#define FENCELOCK_INVALID_ARGUMENT 8

// The store, or this version, cannot do what was asked.
#define FENCELOCK_UNSUPPORTED 9

// The client is closed, or belongs to the process that forked this one.
#define FENCELOCK_CLOSED 10

// The owner has the lock shared already and wants it for itself: it would wait for its own hold.
#define FENCELOCK_WOULD_DEADLOCK 11

// A bug in this library, stopped at its boundary. Please report it.
#define FENCELOCK_INTERNAL 100

// Its explicit lease, or max_hold_ns, ended.
#define FENCELOCK_LOSS_ENDED 1

// It could not be renewed in time.
#define FENCELOCK_LOSS_NOT_RENEWED 2

// The store no longer knows it: the store lost its memory, or gave the lock away.
#define FENCELOCK_LOSS_GONE 3

// An operator broke it.
#define FENCELOCK_LOSS_BROKEN 4

// The client was closed.
#define FENCELOCK_LOSS_CLOSED 5

// It released.
#define FENCELOCK_ABANDONED_NO 0

// It was lost.
#define FENCELOCK_ABANDONED_YES 1

// The store cannot tell; also the first grant of a lock that it has never seen.
#define FENCELOCK_ABANDONED_UNKNOWN 2

// It has the lock for itself: a writer, and every hold of a plain lock.
#define FENCELOCK_MODE_EXCLUSIVE 0

// A reader, beside others.
#define FENCELOCK_MODE_SHARED 1

// It has permits of a semaphore.
#define FENCELOCK_MODE_PERMITS 2

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The library's version, such as "0.1.0". Never freed.
const char *fencelock_version(void);

// FENCELOCK_ABI_VERSION as the library has it.
uint32_t fencelock_abi_version(void);

// How many handles of all kinds were made and not freed: for tests that look for leaks.
uint64_t fencelock_live_handles(void);

// Reads an error.
fencelock_status fencelock_error_get(const struct fencelock_error *error,
                                     struct fencelock_error_info *info);

// The message of an error, for printing: never NULL, empty when it is no error. Valid until the
// error is freed.
const char *fencelock_error_message(const struct fencelock_error *error);

// Frees an error. NULL is none.
fencelock_status fencelock_error_free(struct fencelock_error *error);

// The name of a status, such as "timed_out": never NULL, never freed.
const char *fencelock_status_name(fencelock_status status);

// Reads a text. Valid until it is freed.
fencelock_status fencelock_text_get(const struct fencelock_text *text,
                                    struct fencelock_string *string);

// Frees a text. NULL is none.
fencelock_status fencelock_text_free(struct fencelock_text *text);

// Connects, and waits until the store has answered. `url` names the store: "memory:" (this
// process), "sqlite:path" (this machine), "redis://host" (see docs). Connect anew in a forked
// child.
//
// INVALID_ARGUMENT for a URL that cannot be read, UNSUPPORTED for a store that this build lacks,
// MISCONFIGURED at once for a wrong password and the like, UNAVAILABLE when the store did not answer
// within the connect timeout.
fencelock_status fencelock_connect(const char *url,
                                   size_t url_length,
                                   const struct fencelock_connect_options *options,
                                   struct fencelock_client **client,
                                   struct fencelock_error **error);

// As fencelock_connect(), without blocking: on a thread of its own, since it may ask for addresses.
// The completion has the client.
fencelock_status fencelock_connect_async(const char *url,
                                         size_t url_length,
                                         const struct fencelock_connect_options *options,
                                         fencelock_callback callback,
                                         void *user_data,
                                         struct fencelock_error **error);

// Closes a client: cancels what waits, tells every hold that it is lost (FENCELOCK_LOSS_CLOSED), and
// releases it at the store. Safe while other threads' calls are under way, and to repeat: they end
// with CLOSED. The handle stays valid until it is freed.
//
// With drain_ns above 0 (or FENCELOCK_FOREVER) it first refuses new owners and waits so long for
// what is held and waited for to be released; TIMED_OUT when something was left, and is lost now: the
// client is closed all the same. Without a drain it is OK, whatever is lost. Nothing closes a client at
// the end of the process: what is held then stays locked until its lease is over.
fencelock_status fencelock_client_close(struct fencelock_client *client,
                                        int64_t drain_ns,
                                        struct fencelock_error **error);

// As fencelock_client_close(), without blocking.
fencelock_status fencelock_client_close_async(struct fencelock_client *client,
                                              int64_t drain_ns,
                                              fencelock_callback callback,
                                              void *user_data,
                                              struct fencelock_error **error);

// Whether a client is closed.
fencelock_status fencelock_client_is_closed(const struct fencelock_client *client, bool *closed);

// Whether nothing is held, waited for or being released in the client: for how long to let a process
// live that is to end. Turns nobody away, as fencelock_client_close() with a drain does.
fencelock_status fencelock_client_is_idle(const struct fencelock_client *client,
                                          bool *idle);

// Frees a client's handle. The client itself is closed, in the background, when its locks and holds
// are freed too. NULL is none.
fencelock_status fencelock_client_free(struct fencelock_client *client);

// The 16 hexadecimal digits under which the store knows a client.
fencelock_status fencelock_client_id(const struct fencelock_client *client,
                                     struct fencelock_text **id,
                                     struct fencelock_error **error);

// What a client has counted since it was made, in Prometheus' text format.
fencelock_status fencelock_client_metrics(const struct fencelock_client *client,
                                          struct fencelock_text **metrics,
                                          struct fencelock_error **error);

// The most telling of these counters, as numbers.
fencelock_status fencelock_client_counters(const struct fencelock_client *client,
                                           struct fencelock_counters *counters);

// What a client's store can and cannot do.
fencelock_status fencelock_client_capabilities(const struct fencelock_client *client,
                                               struct fencelock_capabilities *capabilities);

// The lock `name` of a client's store. Asks the store nothing.
//
// INVALID_ARGUMENT unless the name has 1 to 512 bytes of UTF-8 without NUL. On ZooKeeper names are
// paths (see fencelock_capabilities): one with an empty part, or a part `.` or `..`, is refused, too;
// and when a lock lies below another, acquiring it is MISCONFIGURED.
fencelock_status fencelock_client_lock(struct fencelock_client *client,
                                       const char *name,
                                       size_t name_length,
                                       struct fencelock_lock **lock,
                                       struct fencelock_error **error);

// The name of a lock. Valid until the lock is freed.
fencelock_status fencelock_lock_name(const struct fencelock_lock *lock,
                                     struct fencelock_string *name);

// Whether anybody holds the lock, a reader too, by the store's word at the time of asking: good for
// display, never for a decision.
fencelock_status fencelock_lock_is_locked(struct fencelock_lock *lock,
                                          bool *locked,
                                          struct fencelock_error **error);

// As fencelock_lock_is_locked(), without blocking. The completion's number is 0 or 1.
fencelock_status fencelock_lock_is_locked_async(struct fencelock_lock *lock,
                                                fencelock_callback callback,
                                                void *user_data,
                                                struct fencelock_error **error);

// Frees a lock's handle. Holds go on; what was entered and not left is released in the background,
// and who still waits to enter ends with CANCELLED at once. NULL is none.
fencelock_status fencelock_lock_free(struct fencelock_lock *lock);

// Acquires a lock; `options` may be NULL. The calling thread waits, first come, first served.
//
// CONTENDED when it did not want to wait, TIMED_OUT when others held the lock all the while,
// CANCELLED, UNAVAILABLE when the store could not be reached, MISCONFIGURED (also while the name is a
// semaphore's), INVALID_ARGUMENT, CLOSED; WOULD_DEADLOCK, at once, when the owner has the lock to read
// only (see fencelock_client_rwlock()).
fencelock_status fencelock_lock_acquire(struct fencelock_lock *lock,
                                        const struct fencelock_acquire_options *options,
                                        struct fencelock_hold **hold,
                                        struct fencelock_error **error);

// As fencelock_lock_acquire(), without blocking for longer than block_ns says. The completion has the
// hold.
fencelock_status fencelock_lock_acquire_async(struct fencelock_lock *lock,
                                              const struct fencelock_acquire_options *options,
                                              struct fencelock_completion *now,
                                              fencelock_callback callback,
                                              void *user_data,
                                              struct fencelock_operation **operation,
                                              struct fencelock_error **error);

// How many holds an owner has on a lock in this client: the owner of `options`, or the calling
// thread. Of a lock, and of the side of a read-write lock that writes, those to write; of the side that
// reads, those to read. Asks the store nothing. For holds that were acquired; fencelock_lock_depth() is for
// entering.
fencelock_status fencelock_lock_hold_count(struct fencelock_lock *lock,
                                           const struct fencelock_acquire_options *options,
                                           uint64_t *count);

// Goes on with a hold of an explicit owner that another thread, process or language has, by its
// ticket (see fencelock_hold_ticket()): joins it under the same token. The hold is this client's
// own, with its own lease; the lock is free when all of the owner's holds are released.
//
// INVALID_ARGUMENT for a ticket that cannot be read, NOT_HELD when the owner's hold is over.
fencelock_status fencelock_client_attach(struct fencelock_client *client,
                                         const char *ticket,
                                         size_t ticket_length,
                                         struct fencelock_hold **hold,
                                         struct fencelock_error **error);

// As fencelock_client_attach(), without blocking. The completion has the hold.
fencelock_status fencelock_client_attach_async(struct fencelock_client *client,
                                               const char *ticket,
                                               size_t ticket_length,
                                               struct fencelock_completion *now,
                                               fencelock_callback callback,
                                               void *user_data,
                                               struct fencelock_operation **operation,
                                               struct fencelock_error **error);

// The read-write lock `name` of a client's store, which any number of readers hold together, or one
// writer alone. Asks the store nothing. Writing is holding the lock that fencelock_client_lock() gives
// for this name: there is one queue for both, first come, first served. So a reader that comes while a
// writer waits stands behind it, and one that does not want to wait is CONTENDED then.
//
// An explicit lease ends its reader alone; readers of one client share a hold at the store, and each is told of
// its loss. A reader's token is greater than every earlier writer's and smaller than every later one's; two
// readers' tokens say nothing of each other. What the lock protects keeps the greatest token of a writer, w,
// and of anybody, m: it refuses a write whose token is below m, and a read whose token is below w.
//
// An owner that reads may read again, past writers that wait. One that writes may write and read
// again; when its last write has ended, what it reads goes on beside other readers. One that reads and asks
// to write would wait for its own hold: WOULD_DEADLOCK at once, also for a try; see
// fencelock_hold_try_upgrade().
//
// INVALID_ARGUMENT for a name as fencelock_client_lock() says; UNSUPPORTED where the store has none (see
// fencelock_capabilities).
fencelock_status fencelock_client_rwlock(struct fencelock_client *client,
                                         const char *name,
                                         size_t name_length,
                                         struct fencelock_rwlock **rwlock,
                                         struct fencelock_error **error);

// The name of a read-write lock. Valid until it is freed.
fencelock_status fencelock_rwlock_name(const struct fencelock_rwlock *rwlock,
                                       struct fencelock_string *name);

// Acquires a read-write lock to read; `options` may be NULL. The hold is released like any other.
//
// CONTENDED when it did not want to wait, and another writes or waits; otherwise as
// fencelock_lock_acquire().
fencelock_status fencelock_rwlock_acquire_read(struct fencelock_rwlock *rwlock,
                                               const struct fencelock_acquire_options *options,
                                               struct fencelock_hold **hold,
                                               struct fencelock_error **error);

// As fencelock_rwlock_acquire_read(), without blocking for longer than block_ns says. The completion has
// the hold.
fencelock_status fencelock_rwlock_acquire_read_async(struct fencelock_rwlock *rwlock,
                                                     const struct fencelock_acquire_options *options,
                                                     struct fencelock_completion *now,
                                                     fencelock_callback callback,
                                                     void *user_data,
                                                     struct fencelock_operation **operation,
                                                     struct fencelock_error **error);

// Acquires a read-write lock to write; `options` may be NULL.
//
// WOULD_DEADLOCK, at once, when the owner reads, or is let in to read while this waits; otherwise as
// fencelock_lock_acquire().
fencelock_status fencelock_rwlock_acquire_write(struct fencelock_rwlock *rwlock,
                                                const struct fencelock_acquire_options *options,
                                                struct fencelock_hold **hold,
                                                struct fencelock_error **error);

// As fencelock_rwlock_acquire_write(), without blocking for longer than block_ns says. The completion has
// the hold.
fencelock_status fencelock_rwlock_acquire_write_async(struct fencelock_rwlock *rwlock,
                                                      const struct fencelock_acquire_options *options,
                                                      struct fencelock_completion *now,
                                                      fencelock_callback callback,
                                                      void *user_data,
                                                      struct fencelock_operation **operation,
                                                      struct fencelock_error **error);

// The side of a read-write lock that reads, as a lock: for fencelock_lock_enter(), and for code that takes
// any lock. A handle of its own, freed by fencelock_lock_free(); entries belong to it.
fencelock_status fencelock_rwlock_reader(struct fencelock_rwlock *rwlock,
                                         struct fencelock_lock **lock,
                                         struct fencelock_error **error);

// The side of a read-write lock that writes, as fencelock_client_lock() gives it. A handle of its own,
// freed by fencelock_lock_free().
fencelock_status fencelock_rwlock_writer(struct fencelock_rwlock *rwlock,
                                         struct fencelock_lock **lock,
                                         struct fencelock_error **error);

// Frees a read-write lock's handle. Holds go on, and so do the handles of its sides. NULL is none.
fencelock_status fencelock_rwlock_free(struct fencelock_rwlock *rwlock);

// The semaphore `name` of a client's store, of so many permits: 1 to 1,000,000. Asks the store nothing.
// Everybody who holds or waits must say the same number, and the name must not be a lock's; what does not
// agree is MISCONFIGURED when it is acquired, with both numbers in the message.
//
// Who wants permits waits in one queue, first come, first served: a small request never passes a larger
// one that waits. Those of a process that died are free again when their lease is over.
//
// INVALID_ARGUMENT for the number, and for a name as fencelock_client_lock() says; UNSUPPORTED where the
// store has none (see fencelock_capabilities).
fencelock_status fencelock_client_semaphore(struct fencelock_client *client,
                                            const char *name,
                                            size_t name_length,
                                            uint32_t permits,
                                            struct fencelock_semaphore **semaphore,
                                            struct fencelock_error **error);

// The name of a semaphore. Valid until it is freed.
fencelock_status fencelock_semaphore_name(const struct fencelock_semaphore *semaphore,
                                          struct fencelock_string *name);

// How many permits a semaphore has, as its handle was told.
fencelock_status fencelock_semaphore_permits(const struct fencelock_semaphore *semaphore,
                                             uint32_t *permits);

// Takes `count` permits together, waiting for all of them; `options` may be NULL. They are one hold, and
// are given back together when that is released; one that was LOST had come back before.
//
// Permits have no owner: who acquires again takes more, and may wait for its own. The owner in `options`
// means nothing, and an explicit one is INVALID_ARGUMENT. The hold's token names the grant: no
// other one has it. It is no fence: several are valid at once. To fence, take one of several locks.
//
// CONTENDED when it did not want to wait, and too few are free or others wait; INVALID_ARGUMENT unless
// count is 1 to the number of permits; MISCONFIGURED also while the name is a lock's, or while others
// hold or wait who said another number; otherwise as fencelock_lock_acquire().
fencelock_status fencelock_semaphore_acquire(struct fencelock_semaphore *semaphore,
                                             uint32_t count,
                                             const struct fencelock_acquire_options *options,
                                             struct fencelock_hold **hold,
                                             struct fencelock_error **error);

// As fencelock_semaphore_acquire(), without blocking for longer than block_ns says. The completion has the
// hold.
fencelock_status fencelock_semaphore_acquire_async(struct fencelock_semaphore *semaphore,
                                                   uint32_t count,
                                                   const struct fencelock_acquire_options *options,
                                                   struct fencelock_completion *now,
                                                   fencelock_callback callback,
                                                   void *user_data,
                                                   struct fencelock_operation **operation,
                                                   struct fencelock_error **error);

// How many permits the store's holds leave of the number that this handle was told, or follows, at the time
// of asking: good for display, never for a decision. Who waits comes first.
fencelock_status fencelock_semaphore_available_permits(struct fencelock_semaphore *semaphore,
                                                       uint32_t *available,
                                                       struct fencelock_error **error);

// As fencelock_semaphore_available_permits(), without blocking. The completion's number is how many.
fencelock_status fencelock_semaphore_available_permits_async(struct fencelock_semaphore *semaphore,
                                                             fencelock_callback callback,
                                                             void *user_data,
                                                             struct fencelock_error **error);

// Another handle of a semaphore, to be freed, which follows the number of permits of those who hold or
// wait, where that is not its own: for who cannot know of a resize. Its own number counts when nobody
// does, and is the most that one acquire takes; more than there are is INVALID_ARGUMENT then, as after a
// resize.
fencelock_status fencelock_semaphore_adopting(struct fencelock_semaphore *semaphore,
                                              struct fencelock_semaphore **adopting,
                                              struct fencelock_error **error);

// Gives a semaphore another number of permits, 1 to 1,000,000, until nobody holds or waits; `resized` is
// false when nobody does, and whoever comes next says how many there are. Of more, whoever fits now enters
// at once. Of fewer, nobody loses a permit, and nobody enters until enough have come back; who waits for
// more than there are ends with INVALID_ARGUMENT. Everybody who comes later must say the new number, or
// follow it (see fencelock_semaphore_adopting()): this handle keeps the one that it was told.
//
// INVALID_ARGUMENT for the number, MISCONFIGURED while the name is a lock's, UNSUPPORTED, UNAVAILABLE,
// CLOSED.
fencelock_status fencelock_semaphore_resize(struct fencelock_semaphore *semaphore,
                                            uint32_t permits,
                                            bool *resized,
                                            struct fencelock_error **error);

// As fencelock_semaphore_resize(), without blocking. The completion's number is 0 or 1.
fencelock_status fencelock_semaphore_resize_async(struct fencelock_semaphore *semaphore,
                                                  uint32_t permits,
                                                  fencelock_callback callback,
                                                  void *user_data,
                                                  struct fencelock_error **error);

// Frees a semaphore's handle. Holds go on. NULL is none.
fencelock_status fencelock_semaphore_free(struct fencelock_semaphore *semaphore);

// The name of the hold's lock. Valid until the hold is freed.
fencelock_status fencelock_hold_name(const struct fencelock_hold *hold,
                                     struct fencelock_string *name);

// The fencing token: greater than that of every earlier hold of the lock, and below 2^53. It stays
// the same number after the hold was lost; fencelock_hold_check() looks at that first.
fencelock_status fencelock_hold_token(const struct fencelock_hold *hold, uint64_t *token);

// The token, if the hold can be trusted at this moment by this machine's clock; LOST otherwise. The
// hold may end between this and a write: send the token with the write.
fencelock_status fencelock_hold_check(const struct fencelock_hold *hold,
                                      uint64_t *token,
                                      struct fencelock_error **error);

// Whether the hold can be trusted at this moment. Reads the clock; asks the store nothing.
fencelock_status fencelock_hold_is_valid(const struct fencelock_hold *hold, bool *valid);

// How long the hold can be trusted from now on if it is not renewed; 0 when it has ended.
fencelock_status fencelock_hold_remaining(const struct fencelock_hold *hold, int64_t *remaining_ns);

// Whether the owner had the lock already, in this client, when this hold was granted.
fencelock_status fencelock_hold_is_reentry(const struct fencelock_hold *hold, bool *reentry);

// Whether another client waits for the lock, as far as is known.
fencelock_status fencelock_hold_is_wanted(const struct fencelock_hold *hold, bool *wanted);

// Whether the previous holder was lost instead of releasing. Stays so until a hold that was told has
// been released.
fencelock_status fencelock_hold_previous_abandoned(const struct fencelock_hold *hold,
                                                   fencelock_abandoned *previous);

// Sets the hold's lease from now on; never shortens what is left of it. A hold without an explicit
// lease goes on being renewed.
//
// LOST when the hold has ended, INVALID_ARGUMENT for a lease outside 100 ms to 7 days, UNAVAILABLE
// when the store did not answer (the lease may or may not be longer then).
fencelock_status fencelock_hold_extend(struct fencelock_hold *hold,
                                       int64_t lease_ns,
                                       struct fencelock_error **error);

// As fencelock_hold_extend(), without blocking.
fencelock_status fencelock_hold_extend_async(struct fencelock_hold *hold,
                                             int64_t lease_ns,
                                             struct fencelock_completion *now,
                                             fencelock_callback callback,
                                             void *user_data,
                                             struct fencelock_error **error);

// A short text with which another thread, process or language goes on with this hold, through
// fencelock_client_attach(); fit for a header. It is no secret, but whoever has it can join.
//
// INVALID_ARGUMENT unless the lock was acquired with FENCELOCK_OWNER_EXPLICIT.
fencelock_status fencelock_hold_ticket(const struct fencelock_hold *hold,
                                       struct fencelock_text **ticket,
                                       struct fencelock_error **error);

// Releases the lock, waits until the store or the next local holder has it, and frees the handle,
// whatever it returns. From any thread.
//
// LOST when the hold had ended before, NOT_HELD when the handle was released or freed before,
// UNAVAILABLE when the store did not answer within the request timeout (the release goes on in the
// background).
fencelock_status fencelock_hold_release(struct fencelock_hold *hold,
                                        struct fencelock_error **error);

// As fencelock_hold_release(), without blocking. When it returns FENCELOCK_OK, the handle is freed;
// a call that did not begin leaves it.
fencelock_status fencelock_hold_release_async(struct fencelock_hold *hold,
                                              struct fencelock_completion *now,
                                              fencelock_callback callback,
                                              void *user_data,
                                              struct fencelock_error **error);

// Frees a hold's handle. If the lock was not released, it is, in the background. NULL is none.
fencelock_status fencelock_hold_free(struct fencelock_hold *hold);

// Calls `callback` once, on the callback thread, when the hold ends before its release; soon, when
// it has. `destroy` may be NULL; otherwise it is called once, on the callback thread, after the
// callback or when the hold has ended without it. A call that fails leaves user_data to the caller.
fencelock_status fencelock_hold_on_lost(struct fencelock_hold *hold,
                                        fencelock_lost_callback callback,
                                        void *user_data,
                                        fencelock_destroy destroy,
                                        struct fencelock_error **error);

// Calls `callback` once, on the callback thread, when another client waits for the lock; soon, when
// one does. A holder that can pause its work may release then. Otherwise as
// fencelock_hold_on_lost().
fencelock_status fencelock_hold_on_wanted(struct fencelock_hold *hold,
                                          fencelock_wanted_callback callback,
                                          void *user_data,
                                          fencelock_destroy destroy,
                                          struct fencelock_error **error);

// How the hold shares the lock.
fencelock_status fencelock_hold_mode(const struct fencelock_hold *hold,
                                     fencelock_mode *mode_of_hold);

// Makes a hold that writes one that reads, without letting another writer in between: readers that
// wait come in. The handle stays the same; its token is another one from now on, above what was written
// under the old one and below every later writer's. A hold that reads already is left as it is.
//
// CONTENDED when the owner writes by another hold, too; LOST when the hold has ended, NOT_HELD when it was
// released, INVALID_ARGUMENT for a hold of permits, UNSUPPORTED on ZooKeeper for a hold of a plain lock,
// UNAVAILABLE when the store did not answer (the hold reads then all the same).
fencelock_status fencelock_hold_downgrade(struct fencelock_hold *hold,
                                          struct fencelock_error **error);

// As fencelock_hold_downgrade(), without blocking.
fencelock_status fencelock_hold_downgrade_async(struct fencelock_hold *hold,
                                                struct fencelock_completion *now,
                                                fencelock_callback callback,
                                                void *user_data,
                                                struct fencelock_error **error);

// Makes a hold that reads one that writes, if nobody else reads: past those who wait, since it is in
// already. It does not wait for others: two readers that waited for each other would wait for ever. The
// handle stays the same; its token is another one from now on. A hold that writes already is left as it is.
//
// CONTENDED when others read, or its owner has more holds than this one; then the hold still reads.
// Otherwise as fencelock_hold_downgrade().
fencelock_status fencelock_hold_try_upgrade(struct fencelock_hold *hold,
                                            struct fencelock_error **error);

// As fencelock_hold_try_upgrade(), without blocking.
fencelock_status fencelock_hold_try_upgrade_async(struct fencelock_hold *hold,
                                                  struct fencelock_completion *now,
                                                  fencelock_callback callback,
                                                  void *user_data,
                                                  struct fencelock_error **error);

// Enters a lock for the calling thread, or for the FENCELOCK_OWNER_LOCAL of `options` (which may be
// NULL); other owners are refused. `token` may be NULL. Who is in enters again at once: that looks
// at the clock and counts, the other options are not looked at. Entries belong to this handle of the
// lock.
//
// A hold that was lost is not counted on: entering again acquires anew, with a new token, and what
// was entered before gives LOST when it leaves. Otherwise as fencelock_lock_acquire().
fencelock_status fencelock_lock_enter(struct fencelock_lock *lock,
                                      const struct fencelock_acquire_options *options,
                                      uint64_t *token,
                                      struct fencelock_error **error);

// As fencelock_lock_enter(), without blocking. The completion's number is the token.
fencelock_status fencelock_lock_enter_async(struct fencelock_lock *lock,
                                            const struct fencelock_acquire_options *options,
                                            struct fencelock_completion *now,
                                            fencelock_callback callback,
                                            void *user_data,
                                            struct fencelock_operation **operation,
                                            struct fencelock_error **error);

// Leaves a lock once; the last time releases, and waits for the store. Of `options` only the owner
// counts.
//
// NOT_HELD when the owner is not in, LOST when its hold had ended before, UNAVAILABLE when the store
// did not answer within the request timeout (the release goes on in the background).
fencelock_status fencelock_lock_leave(struct fencelock_lock *lock,
                                      const struct fencelock_acquire_options *options,
                                      struct fencelock_error **error);

// As fencelock_lock_leave(), without blocking. NOT_HELD is returned, and the callback not called; a
// leave that was counted tells of LOST through its completion.
fencelock_status fencelock_lock_leave_async(struct fencelock_lock *lock,
                                            const struct fencelock_acquire_options *options,
                                            struct fencelock_completion *now,
                                            fencelock_callback callback,
                                            void *user_data,
                                            struct fencelock_error **error);

// How often the owner is in: the owner of `options`, or the calling thread.
fencelock_status fencelock_lock_depth(struct fencelock_lock *lock,
                                      const struct fencelock_acquire_options *options,
                                      uint64_t *depth);

// The hold that the owner entered with last, as a handle of its own, to be freed: for its token, its
// validity, its callbacks. Freeing it does not leave the lock; releasing it ends the hold, and the
// leave will say so. NOT_HELD when the owner is not in.
fencelock_status fencelock_lock_entered(struct fencelock_lock *lock,
                                        const struct fencelock_acquire_options *options,
                                        struct fencelock_hold **hold,
                                        struct fencelock_error **error);

// A token that is not triggered. It may be given to any number of calls. In a forked child it is one
// of the child's own from then on.
fencelock_status fencelock_cancel_new(struct fencelock_cancel **cancel,
                                      struct fencelock_error **error);

// Ends the waits that were given this token, and those that will be, with CANCELLED: once and for
// good. A wait that has its lock already keeps it. From any thread; in a signal handler use
// fencelock_cancel_signal().
fencelock_status fencelock_cancel_trigger(struct fencelock_cancel *cancel);

// As fencelock_cancel_trigger(), and safe in a signal handler: it takes no mutex and allocates
// nothing; a thread of the library does the rest at once. The token must not be freed before the
// handler has returned. On Windows, which has no such handlers, it is fencelock_cancel_trigger().
fencelock_status fencelock_cancel_signal(struct fencelock_cancel *cancel);

// Whether a token was triggered.
fencelock_status fencelock_cancel_is_triggered(const struct fencelock_cancel *cancel,
                                               bool *triggered);

// Frees a token's handle. Waits that it was given to go on. NULL is none.
fencelock_status fencelock_cancel_free(struct fencelock_cancel *cancel);

// Asks the store for its time, and gives the nanoseconds since 1970 that it says.
fencelock_status fencelock_client_ping(struct fencelock_client *client,
                                       int64_t *store_time_ns,
                                       struct fencelock_error **error);

// As fencelock_client_ping(), without blocking. The completion's number is the time.
fencelock_status fencelock_client_ping_async(struct fencelock_client *client,
                                             fencelock_callback callback,
                                             void *user_data,
                                             struct fencelock_error **error);

// Ends the holds on a lock that were seen under `token`, whoever has them: the token of
// fencelock_client_inspect(), or of a hold. Gives how many there were. When the lock has changed hands
// since, nothing is ended, and `changed_hands` is the token under which somebody else holds it now;
// otherwise 0. So a break may be repeated. The holders are told, but one that does not listen goes on
// believing in its hold until its validity ends: only fencing keeps its writes out.
fencelock_status fencelock_client_break(struct fencelock_client *client,
                                        const char *name,
                                        size_t name_length,
                                        uint64_t token,
                                        uint64_t *ended,
                                        uint64_t *changed_hands,
                                        struct fencelock_error **error);

// As fencelock_client_break(), without blocking. The completion's number is how many there were; it has
// changed_hands as well.
fencelock_status fencelock_client_break_async(struct fencelock_client *client,
                                              const char *name,
                                              size_t name_length,
                                              uint64_t token,
                                              fencelock_callback callback,
                                              void *user_data,
                                              struct fencelock_error **error);

// Ends one hold on a lock, by the id and the token that fencelock_inspection_hold() shows: one reader of
// several, or one who has permits. The others stay. Otherwise as fencelock_client_break().
//
// INVALID_ARGUMENT for what is no hold's id.
fencelock_status fencelock_client_break_hold(struct fencelock_client *client,
                                             const char *name,
                                             size_t name_length,
                                             uint64_t token,
                                             const char *hold,
                                             size_t hold_length,
                                             uint64_t *ended,
                                             uint64_t *changed_hands,
                                             struct fencelock_error **error);

// As fencelock_client_break_hold(), without blocking. The completion is as that of
// fencelock_client_break_async().
fencelock_status fencelock_client_break_hold_async(struct fencelock_client *client,
                                                   const char *name,
                                                   size_t name_length,
                                                   uint64_t token,
                                                   const char *hold,
                                                   size_t hold_length,
                                                   fencelock_callback callback,
                                                   void *user_data,
                                                   struct fencelock_error **error);

// The names of at most `limit` locks that begin with `prefix` (which may be NULL: all), in the
// store's order. A lock that was used lately may be listed although nobody holds it. A limit of 0 is
// INVALID_ARGUMENT.
fencelock_status fencelock_client_list(struct fencelock_client *client,
                                       const char *prefix,
                                       size_t prefix_length,
                                       size_t limit,
                                       struct fencelock_names **names,
                                       struct fencelock_error **error);

// As fencelock_client_list(), without blocking. The completion has the names.
fencelock_status fencelock_client_list_async(struct fencelock_client *client,
                                             const char *prefix,
                                             size_t prefix_length,
                                             size_t limit,
                                             fencelock_callback callback,
                                             void *user_data,
                                             struct fencelock_error **error);

// The state of a lock: its holds and who waits. NULL, and FENCELOCK_OK, when the store knows nothing
// of it. Changes nothing.
fencelock_status fencelock_client_inspect(struct fencelock_client *client,
                                          const char *name,
                                          size_t name_length,
                                          struct fencelock_inspection **inspection,
                                          struct fencelock_error **error);

// As fencelock_client_inspect(), without blocking. The completion has the inspection.
fencelock_status fencelock_client_inspect_async(struct fencelock_client *client,
                                                const char *name,
                                                size_t name_length,
                                                fencelock_callback callback,
                                                void *user_data,
                                                struct fencelock_error **error);

// How many names there are.
fencelock_status fencelock_names_count(const struct fencelock_names *names, size_t *count);

// One of the names, counted from 0. Valid until they are freed.
fencelock_status fencelock_names_get(const struct fencelock_names *names,
                                     size_t index,
                                     struct fencelock_string *name);

// Frees names. NULL is none.
fencelock_status fencelock_names_free(struct fencelock_names *names);

// Reads what was found of the lock.
fencelock_status fencelock_inspection_lock(const struct fencelock_inspection *inspection,
                                           struct fencelock_lock_info *info);

// Reads one of the holds, counted from 0.
fencelock_status fencelock_inspection_hold(const struct fencelock_inspection *inspection,
                                           size_t index,
                                           struct fencelock_hold_info *info);

// Reads one of the waiters, counted from 0, first come first.
fencelock_status fencelock_inspection_waiter(const struct fencelock_inspection *inspection,
                                             size_t index,
                                             struct fencelock_waiter_info *info);

// Frees an inspection. NULL is none.
fencelock_status fencelock_inspection_free(struct fencelock_inspection *inspection);

// Waits until every callback that was due when this was called has returned; for tests, and before
// a library is unloaded. INVALID_ARGUMENT on the callback thread, TIMED_OUT after `timeout_ns`
// (FENCELOCK_FOREVER: never).
fencelock_status fencelock_callbacks_wait(int64_t timeout_ns, struct fencelock_error **error);

// Cancels an asynchronous call, from any thread. The callback is called all the same: with
// CANCELLED, and then nothing is held and nobody waits, or, when this came too late, with what came
// of the call.
fencelock_status fencelock_operation_cancel(struct fencelock_operation *operation);

// Frees the handle of a call; the call goes on. NULL is none.
fencelock_status fencelock_operation_free(struct fencelock_operation *operation);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FENCELOCK_H */
