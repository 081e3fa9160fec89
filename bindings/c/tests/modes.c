// Readers, writers and permits.
#include "check.h"

#include <sys/wait.h>

static bool shared(void) {
    fencelock_client *client = client_of_store();
    bool known = capabilities_of(client).shared;
    fencelock_rwlock *rwlock = NULL;
    if (!known) {
        FAILS(FENCELOCK_UNSUPPORTED, fencelock_client_rwlock, client, "x", 1, &rwlock);
        CHECK(rwlock == NULL);
    }
    OK(fencelock_client_close, client, 0);
    IS(FENCELOCK_OK, fencelock_client_free(client));
    return known;
}

// Whether the store changes the mode of a hold.
static bool converts(void) {
    if (!shared()) return false;
    fencelock_client *client = client_of_store();
    fencelock_lock *lock = NULL;
    fencelock_error *error = NULL;
    OK(fencelock_client_lock, client, name_of("converts"), FENCELOCK_NTS, &lock);
    fencelock_hold *hold = acquire(lock, fresh(FENCELOCK_TRY));
    fencelock_status status = fencelock_hold_downgrade(hold, &error);
    CHECK(status == FENCELOCK_OK || status == FENCELOCK_UNSUPPORTED);
    IS(FENCELOCK_OK, fencelock_error_free(error));
    OK(fencelock_hold_release, hold);
    IS(FENCELOCK_OK, fencelock_lock_free(lock));
    OK(fencelock_client_close, client, 0);
    IS(FENCELOCK_OK, fencelock_client_free(client));
    return status == FENCELOCK_OK;
}

static bool permits(void) {
    fencelock_client *client = client_of_store();
    bool known = capabilities_of(client).permits;
    fencelock_semaphore *semaphore = NULL;
    if (!known) {
        FAILS(FENCELOCK_UNSUPPORTED, fencelock_client_semaphore, client, "x", 1, 3, &semaphore);
        CHECK(semaphore == NULL);
    }
    OK(fencelock_client_close, client, 0);
    IS(FENCELOCK_OK, fencelock_client_free(client));
    return known;
}

static fencelock_rwlock *rwlock_of(fencelock_client *client, const char *name) {
    fencelock_rwlock *rwlock = NULL;
    OK(fencelock_client_rwlock, client, name, FENCELOCK_NTS, &rwlock);
    CHECK(rwlock != NULL);
    return rwlock;
}

static fencelock_hold *reading(fencelock_rwlock *rwlock, fencelock_acquire_options options) {
    fencelock_hold *hold = NULL;
    OK(fencelock_rwlock_acquire_read, rwlock, &options, &hold);
    CHECK(hold != NULL);
    return hold;
}

static fencelock_hold *writing(fencelock_rwlock *rwlock, fencelock_acquire_options options) {
    fencelock_hold *hold = NULL;
    OK(fencelock_rwlock_acquire_write, rwlock, &options, &hold);
    CHECK(hold != NULL);
    return hold;
}

static fencelock_hold *taking(fencelock_semaphore *semaphore, uint32_t count, int64_t timeout_ns) {
    fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    fencelock_hold *hold = NULL;
    options.timeout_ns = timeout_ns;
    OK(fencelock_semaphore_acquire, semaphore, count, &options, &hold);
    CHECK(hold != NULL);
    return hold;
}

static uint32_t available(fencelock_semaphore *semaphore) {
    uint32_t free = 0;
    OK(fencelock_semaphore_available_permits, semaphore, &free);
    return free;
}

static void end(fencelock_client *client) {
    OK(fencelock_client_close, client, 0);
    IS(FENCELOCK_OK, fencelock_client_free(client));
}

// How many stand in the queue of a name, by the store's word.
static size_t queued(fencelock_client *client, const char *name) {
    fencelock_inspection *inspection = NULL;
    OK(fencelock_client_inspect, client, name, FENCELOCK_NTS, &inspection);
    if (inspection == NULL) return 0;
    fencelock_lock_info info = {.size = sizeof info};
    IS(FENCELOCK_OK, fencelock_inspection_lock(inspection, &info));
    IS(FENCELOCK_OK, fencelock_inspection_free(inspection));
    return info.waiting;
}

static bool reads_at_once(fencelock_rwlock *lock) {
    fencelock_acquire_options options = fresh(FENCELOCK_TRY);
    fencelock_hold *hold = NULL;
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_rwlock_acquire_read(lock, &options, &hold, &error);
    IS(FENCELOCK_OK, fencelock_error_free(error));
    if (status == FENCELOCK_OK) OK(fencelock_hold_release, hold);
    return status != FENCELOCK_CONTENDED;
}

static void readers_share_and_a_writer_waits_its_turn(void) {
    if (!shared()) return;
    fencelock_client *here = client_of_store(), *there = client_of_store();
    char name[200];
    snprintf(name, sizeof name, "%s", name_of("prices"));
    fencelock_rwlock *mine = rwlock_of(here, name), *theirs = rwlock_of(there, name);
    fencelock_string said;
    IS(FENCELOCK_OK, fencelock_rwlock_name(mine, &said));
    CHECK(strcmp(said.data, name) == 0 && said.length == strlen(name));

    fencelock_hold *writer = writing(mine, fresh(FENCELOCK_TRY)), *none = NULL;
    uint64_t written = token_of(writer);
    OK(fencelock_hold_release, writer);
    fencelock_hold *one = reading(mine, fresh(FENCELOCK_TRY));
    fencelock_hold *two = reading(theirs, fresh(FENCELOCK_TRY));
    CHECK(token_of(one) > written && token_of(two) > written);
    fencelock_acquire_options try = fresh(FENCELOCK_TRY), wait = fresh(BOUND);
    FAILS(FENCELOCK_CONTENDED, fencelock_rwlock_acquire_write, theirs, &try, &none);
    CHECK(none == NULL);
    // The lock of that name is the side that writes.
    fencelock_lock *lock = NULL;
    OK(fencelock_client_lock, there, name, FENCELOCK_NTS, &lock);
    FAILS(FENCELOCK_CONTENDED, fencelock_lock_acquire, lock, &try, &none);

    struct mail mail = {0}, late = {0};
    OK(fencelock_rwlock_acquire_write_async, theirs, &wait, NULL, post, &mail, NULL);
    UNTIL(queued(here, name) == 1);
    // Who reads lets others of its client join until that has heard of the writer.
    UNTIL(!reads_at_once(mine));
    OK(fencelock_rwlock_acquire_read_async, mine, &wait, NULL, post, &late, NULL);
    uint64_t read = token_of(two) > token_of(one) ? token_of(two) : token_of(one);
    OK(fencelock_hold_release, one);
    CHECK(atomic_load(&mail.count) == 0);
    OK(fencelock_hold_release, two);
    fencelock_completion granted = collect(&mail);
    CHECK(granted.status == FENCELOCK_OK && token_of(granted.hold) > read);
    CHECK(atomic_load(&late.count) == 0);
    written = token_of(granted.hold);
    OK(fencelock_hold_release, granted.hold);
    granted = collect(&late);
    CHECK(granted.status == FENCELOCK_OK && token_of(granted.hold) > written);
    OK(fencelock_hold_release, granted.hold);

    IS(FENCELOCK_OK, fencelock_lock_free(lock));
    IS(FENCELOCK_OK, fencelock_rwlock_free(mine));
    IS(FENCELOCK_OK, fencelock_rwlock_free(theirs));
    end(here);
    end(there);
}

static void who_reads_and_would_write_is_told_at_once(void) {
    if (!shared()) return;
    fencelock_client *client = client_of_store();
    fencelock_rwlock *rwlock = rwlock_of(client, name_of("upgrade"));
    fencelock_hold *hold = NULL, *again = NULL, *none = NULL;
    OK(fencelock_rwlock_acquire_read, rwlock, NULL, &hold);
    // Past a writer that waits: it is in already.
    struct mail mail = {0};
    fencelock_acquire_options other = local(7, BOUND), try = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    try.timeout_ns = FENCELOCK_TRY;
    OK(fencelock_rwlock_acquire_write_async, rwlock, &other, NULL, post, &mail, NULL);
    UNTIL(waiters(client) == 1);
    OK(fencelock_rwlock_acquire_read, rwlock, &try, &again);
    CHECK(token_of(again) == token_of(hold));
    FAILS(FENCELOCK_WOULD_DEADLOCK, fencelock_rwlock_acquire_write, rwlock, NULL, &none);
    FAILS(FENCELOCK_WOULD_DEADLOCK, fencelock_rwlock_acquire_write, rwlock, &try, &none);
    CHECK(none == NULL && waiters(client) == 1);
    OK(fencelock_hold_release, again);
    OK(fencelock_hold_release, hold);
    OK(fencelock_hold_release, collect(&mail).hold);

    // Who writes reads, at the same token.
    OK(fencelock_rwlock_acquire_write, rwlock, NULL, &hold);
    OK(fencelock_rwlock_acquire_read, rwlock, &try, &again);
    CHECK(token_of(again) == token_of(hold));
    OK(fencelock_hold_release, again);
    OK(fencelock_hold_release, hold);
    IS(FENCELOCK_OK, fencelock_rwlock_free(rwlock));
    end(client);
}

struct branch {
    fencelock_rwlock *rwlock;
    atomic_int reads, go;
    uint64_t token;
};

static void *read_as_the_same_owner(void *data) {
    struct branch *branch = data;
    fencelock_hold *hold = reading(branch->rwlock, local(5, FENCELOCK_TRY)), *none = NULL;
    CHECK(token_of(hold) == branch->token);
    fencelock_acquire_options five = local(5, FENCELOCK_FOREVER);
    FAILS(FENCELOCK_WOULD_DEADLOCK, fencelock_rwlock_acquire_write, branch->rwlock, &five, &none);
    atomic_store(&branch->reads, 1);
    UNTIL(atomic_load(&branch->go));
    OK(fencelock_hold_release, hold);
    return NULL;
}

static void two_threads_of_one_owner_read_as_one(void) {
    if (!shared()) return;
    fencelock_client *client = client_of_store();
    struct branch branch = {.rwlock = rwlock_of(client, name_of("owner"))};
    fencelock_hold *hold = reading(branch.rwlock, local(5, FENCELOCK_TRY)), *none = NULL;
    branch.token = token_of(hold);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, read_as_the_same_owner, &branch) == 0);
    UNTIL(atomic_load(&branch.reads));
    OK(fencelock_hold_release, hold);
    // The other branch goes on, for the owner.
    fencelock_acquire_options five = local(5, FENCELOCK_TRY), six = local(6, FENCELOCK_TRY);
    FAILS(FENCELOCK_WOULD_DEADLOCK, fencelock_rwlock_acquire_write, branch.rwlock, &five, &none);
    FAILS(FENCELOCK_CONTENDED, fencelock_rwlock_acquire_write, branch.rwlock, &six, &none);
    atomic_store(&branch.go, 1);
    pthread_join(thread, NULL);
    OK(fencelock_hold_release, writing(branch.rwlock, five));
    IS(FENCELOCK_OK, fencelock_rwlock_free(branch.rwlock));
    end(client);
}

static void *cancel_soon(void *data) {
    UNTIL(waiters(((void **)data)[0]) == 1);
    IS(FENCELOCK_OK, fencelock_cancel_trigger(((void **)data)[1]));
    return NULL;
}

static void a_reader_that_waits_is_cancelled(void) {
    if (!shared()) return;
    fencelock_client *client = client_of_store(), *there = client_of_store();
    char name[200];
    snprintf(name, sizeof name, "%s", name_of("cancelled"));
    fencelock_rwlock *mine = rwlock_of(client, name), *theirs = rwlock_of(there, name);
    fencelock_hold *writer = writing(theirs, fresh(FENCELOCK_TRY)), *none = NULL;
    fencelock_acquire_options options = fresh(FENCELOCK_FOREVER);
    OK(fencelock_cancel_new, &options.cancel);
    void *both[] = {client, options.cancel};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, cancel_soon, both) == 0);
    FAILS(FENCELOCK_CANCELLED, fencelock_rwlock_acquire_read, mine, &options, &none);
    pthread_join(thread, NULL);
    IS(FENCELOCK_OK, fencelock_cancel_free(options.cancel));

    struct mail mail = {0};
    fencelock_operation *operation = NULL;
    options.cancel = NULL;
    OK(fencelock_rwlock_acquire_read_async, mine, &options, NULL, post, &mail, &operation);
    UNTIL(queued(there, name) == 1);
    IS(FENCELOCK_OK, fencelock_operation_cancel(operation));
    fencelock_completion ended = collect(&mail);
    CHECK(ended.status == FENCELOCK_CANCELLED && ended.hold == NULL);
    check_error(__FILE__, __LINE__, ended.error, FENCELOCK_CANCELLED);
    IS(FENCELOCK_OK, fencelock_operation_free(operation));
    UNTIL(queued(there, name) == 0);
    OK(fencelock_hold_release, writer);
    OK(fencelock_hold_release, writing(theirs, fresh(BOUND)));
    IS(FENCELOCK_OK, fencelock_rwlock_free(mine));
    IS(FENCELOCK_OK, fencelock_rwlock_free(theirs));
    end(client);
    end(there);
}

static void count_loss(fencelock_loss reason, void *count) {
    CHECK(reason == FENCELOCK_LOSS_ENDED || reason == FENCELOCK_LOSS_CLOSED);
    atomic_fetch_add((atomic_int *)count, 1);
}

static void a_loss_is_told_to_the_reader_that_it_concerns(void) {
    if (!shared()) return;
    fencelock_client *here = client_of_store(), *there = client_of_store();
    if (!capabilities_of(here).leases) {
        end(here);
        end(there);
        return;
    }
    char name[200];
    snprintf(name, sizeof name, "%s", name_of("loss"));
    fencelock_rwlock *mine = rwlock_of(here, name), *theirs = rwlock_of(there, name);
    fencelock_acquire_options brief = fresh(FENCELOCK_TRY);
    brief.lease_ns = 100 * FENCELOCK_MILLISECOND;
    atomic_int lost = 0, kept = 0;
    fencelock_hold *beside = reading(mine, fresh(FENCELOCK_TRY));
    fencelock_hold *far = reading(theirs, fresh(FENCELOCK_TRY));
    fencelock_hold *hold = reading(mine, brief);
    OK(fencelock_hold_on_lost, hold, count_loss, &lost, NULL);
    OK(fencelock_hold_on_lost, beside, count_loss, &kept, NULL);
    OK(fencelock_hold_on_lost, far, count_loss, &kept, NULL);
    UNTIL(atomic_load(&lost) == 1);
    FAILS(FENCELOCK_LOST, fencelock_hold_release, hold);
    OK(fencelock_callbacks_wait, BOUND);
    bool valid = false;
    IS(FENCELOCK_OK, fencelock_hold_is_valid(beside, &valid));
    CHECK(valid);
    IS(FENCELOCK_OK, fencelock_hold_is_valid(far, &valid));
    CHECK(valid && atomic_load(&kept) == 0);
    OK(fencelock_hold_release, beside);
    OK(fencelock_hold_release, far);
    // A reader that was lost has left nothing half done.
    hold = writing(mine, fresh(BOUND));
    fencelock_abandoned previous = FENCELOCK_ABANDONED_YES;
    IS(FENCELOCK_OK, fencelock_hold_previous_abandoned(hold, &previous));
    CHECK(previous != FENCELOCK_ABANDONED_YES);
    OK(fencelock_hold_release, hold);
    IS(FENCELOCK_OK, fencelock_rwlock_free(mine));
    IS(FENCELOCK_OK, fencelock_rwlock_free(theirs));
    end(here);
    end(there);
}

static fencelock_mode mode_of(fencelock_hold *hold) {
    fencelock_mode mode = -1;
    IS(FENCELOCK_OK, fencelock_hold_mode(hold, &mode));
    return mode;
}

static void a_writer_is_made_a_reader_and_back(void) {
    if (!converts()) return;
    fencelock_client *here = client_of_store(), *there = client_of_store();
    char name[200];
    snprintf(name, sizeof name, "%s", name_of("convert"));
    fencelock_rwlock *mine = rwlock_of(here, name), *theirs = rwlock_of(there, name);
    fencelock_hold *hold = writing(mine, fresh(FENCELOCK_TRY)), *none = NULL;
    uint64_t written = token_of(hold);
    struct mail reads = {0}, writes = {0}, converted = {0};
    fencelock_acquire_options wait = fresh(BOUND);
    OK(fencelock_rwlock_acquire_read_async, theirs, &wait, NULL, post, &reads, NULL);
    UNTIL(queued(here, name) == 1);
    OK(fencelock_rwlock_acquire_write_async, theirs, &wait, NULL, post, &writes, NULL);
    UNTIL(queued(here, name) == 2);
    CHECK(mode_of(hold) == FENCELOCK_MODE_EXCLUSIVE);
    OK(fencelock_hold_downgrade, hold);
    OK(fencelock_hold_downgrade, hold);
    uint64_t read = token_of(hold);
    CHECK(mode_of(hold) == FENCELOCK_MODE_SHARED && read > written);
    fencelock_hold *beside = collect(&reads).hold;
    CHECK(mode_of(beside) == FENCELOCK_MODE_SHARED && token_of(beside) > written);
    FAILS(FENCELOCK_CONTENDED, fencelock_hold_try_upgrade, hold);
    bool valid = false;
    IS(FENCELOCK_OK, fencelock_hold_is_valid(hold, &valid));
    CHECK(valid && mode_of(hold) == FENCELOCK_MODE_SHARED);
    CHECK(atomic_load(&writes.count) == 0);
    OK(fencelock_hold_release, beside);
    // Alone, it passes the writer that waits.
    OK(fencelock_hold_try_upgrade_async, hold, NULL, post, &converted);
    fencelock_completion ended = collect(&converted);
    CHECK(ended.status == FENCELOCK_OK && ended.hold == NULL);
    CHECK(mode_of(hold) == FENCELOCK_MODE_EXCLUSIVE && token_of(hold) > read);
    OK(fencelock_hold_downgrade_async, hold, NULL, post, &converted);
    CHECK(collect(&converted).status == FENCELOCK_OK);
    read = token_of(hold);
    fencelock_acquire_options try = fresh(FENCELOCK_TRY);
    FAILS(FENCELOCK_CONTENDED, fencelock_rwlock_acquire_write, mine, &try, &none);
    OK(fencelock_hold_release, hold);
    hold = collect(&writes).hold;
    CHECK(token_of(hold) > read);
    OK(fencelock_hold_release, hold);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_hold_downgrade, hold);
    IS(FENCELOCK_OK, fencelock_rwlock_free(mine));
    IS(FENCELOCK_OK, fencelock_rwlock_free(theirs));
    end(here);
    end(there);
}

// As it is done with a lock that is entered: read inside a write, then leave the write.
static void who_reads_inside_a_write_and_leaves_it_reads_on(void) {
    if (!converts()) return;
    fencelock_client *here = client_of_store(), *there = client_of_store();
    char name[200];
    snprintf(name, sizeof name, "%s", name_of("idiom"));
    fencelock_rwlock *mine = rwlock_of(here, name), *theirs = rwlock_of(there, name);
    fencelock_lock *reader = NULL, *writer = NULL;
    OK(fencelock_rwlock_reader, mine, &reader);
    OK(fencelock_rwlock_writer, mine, &writer);
    OK(fencelock_lock_enter, writer, NULL, NULL);
    OK(fencelock_lock_enter, reader, NULL, NULL);
    OK(fencelock_lock_leave, writer, NULL);
    fencelock_hold *beside = reading(theirs, fresh(BOUND)), *none = NULL;
    fencelock_acquire_options try = fresh(FENCELOCK_TRY);
    FAILS(FENCELOCK_CONTENDED, fencelock_rwlock_acquire_write, theirs, &try, &none);
    FAILS(FENCELOCK_WOULD_DEADLOCK, fencelock_lock_enter, writer, NULL, NULL);
    OK(fencelock_lock_leave, reader, NULL);
    OK(fencelock_hold_release, beside);
    OK(fencelock_hold_release, writing(theirs, fresh(BOUND)));
    IS(FENCELOCK_OK, fencelock_lock_free(reader));
    IS(FENCELOCK_OK, fencelock_lock_free(writer));
    IS(FENCELOCK_OK, fencelock_rwlock_free(mine));
    IS(FENCELOCK_OK, fencelock_rwlock_free(theirs));
    end(here);
    end(there);
}

static void the_sides_are_locks(void) {
    if (!shared()) return;
    fencelock_client *client = client_of_store();
    char name[200];
    snprintf(name, sizeof name, "%s", name_of("sides"));
    fencelock_rwlock *rwlock = rwlock_of(client, name);
    fencelock_lock *reader = NULL, *writer = NULL;
    OK(fencelock_rwlock_reader, rwlock, &reader);
    OK(fencelock_rwlock_writer, rwlock, &writer);
    IS(FENCELOCK_OK, fencelock_rwlock_free(rwlock));
    fencelock_string said;
    IS(FENCELOCK_OK, fencelock_lock_name(reader, &said));
    CHECK(strcmp(said.data, name) == 0);
    fencelock_acquire_options one = local(1, FENCELOCK_TRY), two = local(2, FENCELOCK_TRY);
    uint64_t token = 0, again = 0, depth = 0;
    OK(fencelock_lock_enter, reader, &one, &token);
    OK(fencelock_lock_enter, reader, &one, &again);
    CHECK(token == again);
    OK(fencelock_lock_enter, reader, &two, &again);
    IS(FENCELOCK_OK, fencelock_lock_depth(reader, &one, &depth));
    CHECK(depth == 2);
    FAILS(FENCELOCK_WOULD_DEADLOCK, fencelock_lock_enter, writer, &one, &again);
    uint64_t count = 9;
    IS(FENCELOCK_OK, fencelock_lock_hold_count(writer, &one, &count));
    CHECK(count == 0);
    IS(FENCELOCK_OK, fencelock_lock_hold_count(reader, &one, &count));
    CHECK(count == 1);
    fencelock_acquire_options three = local(3, FENCELOCK_TRY);
    FAILS(FENCELOCK_CONTENDED, fencelock_lock_enter, writer, &three, &again);
    OK(fencelock_lock_leave, reader, &one);
    OK(fencelock_lock_leave, reader, &one);
    FAILS(FENCELOCK_NOT_HELD, fencelock_lock_leave, reader, &one);
    FAILS(FENCELOCK_NOT_HELD, fencelock_lock_leave, writer, &two);
    OK(fencelock_lock_leave, reader, &two);
    OK(fencelock_lock_enter, writer, &three, &again);
    CHECK(again > token);
    FAILS(FENCELOCK_CONTENDED, fencelock_lock_enter, reader, &one, &token);
    OK(fencelock_lock_leave, writer, &three);
    IS(FENCELOCK_OK, fencelock_lock_free(reader));
    IS(FENCELOCK_OK, fencelock_lock_free(writer));
    end(client);
}

static void closing_tells_readers_and_takers_of_permits(void) {
    if (!shared() || !permits()) return;
    fencelock_client *client = client_of_store();
    fencelock_rwlock *rwlock = rwlock_of(client, name_of("closed"));
    fencelock_semaphore *semaphore = NULL;
    OK(fencelock_client_semaphore, client, name_of("closed"), FENCELOCK_NTS, 2, &semaphore);
    atomic_int lost = 0;
    fencelock_hold *holds[] = {reading(rwlock, fresh(FENCELOCK_TRY)),
                               reading(rwlock, fresh(FENCELOCK_TRY)),
                               taking(semaphore, 2, FENCELOCK_TRY)};
    for (int i = 0; i < 3; i++) OK(fencelock_hold_on_lost, holds[i], count_loss, &lost, NULL);
    fencelock_acquire_options forever = fresh(FENCELOCK_FOREVER);
    struct mail waits[3] = {0};
    OK(fencelock_rwlock_acquire_write_async, rwlock, &forever, NULL, post, &waits[0], NULL);
    OK(fencelock_rwlock_acquire_read_async, rwlock, &forever, NULL, post, &waits[1], NULL);
    OK(fencelock_semaphore_acquire_async, semaphore, 1, NULL, NULL, post, &waits[2], NULL);
    UNTIL(waiters(client) == 3);
    OK(fencelock_client_close, client, 0);
    for (int i = 0; i < 3; i++) {
        fencelock_completion ended = collect(&waits[i]);
        CHECK(ended.status == FENCELOCK_CLOSED || ended.status == FENCELOCK_CANCELLED);
        check_error(__FILE__, __LINE__, ended.error, ended.status);
        FAILS(FENCELOCK_LOST, fencelock_hold_release, holds[i]);
    }
    UNTIL(atomic_load(&lost) == 3);
    IS(FENCELOCK_OK, fencelock_rwlock_free(rwlock));
    IS(FENCELOCK_OK, fencelock_semaphore_free(semaphore));
    end(client);
}

static void permits_are_counted_and_nobody_passes_a_larger_request(void) {
    if (!permits()) return;
    fencelock_client *here = client_of_store(), *there = client_of_store();
    char name[200];
    snprintf(name, sizeof name, "%s", name_of("mailers"));
    fencelock_semaphore *mine = NULL, *theirs = NULL;
    OK(fencelock_client_semaphore, here, name, FENCELOCK_NTS, 4, &mine);
    OK(fencelock_client_semaphore, there, name, FENCELOCK_NTS, 4, &theirs);
    fencelock_string said;
    uint32_t number = 0;
    IS(FENCELOCK_OK, fencelock_semaphore_name(mine, &said));
    IS(FENCELOCK_OK, fencelock_semaphore_permits(mine, &number));
    CHECK(strcmp(said.data, name) == 0 && number == 4);
    CHECK(available(mine) == 4);
    fencelock_hold *two = taking(mine, 2, FENCELOCK_TRY), *one = taking(theirs, 1, FENCELOCK_TRY);
    CHECK(token_of(one) > token_of(two) && available(mine) == 1);
    struct mail mail = {0}, large = {0}, small = {0};
    OK(fencelock_semaphore_available_permits_async, theirs, post, &mail);
    CHECK(collect(&mail).number == 1);

    fencelock_hold *none = NULL;
    fencelock_acquire_options try = fresh(FENCELOCK_TRY);
    FAILS(FENCELOCK_CONTENDED, fencelock_semaphore_acquire, theirs, 2, &try, &none);
    try.timeout_ns = 20 * FENCELOCK_MILLISECOND;
    FAILS(FENCELOCK_TIMED_OUT, fencelock_semaphore_acquire, theirs, 2, &try, &none);
    OK(fencelock_semaphore_acquire_async, theirs, 3, NULL, NULL, post, &large, NULL);
    UNTIL(queued(here, name) == 1);
    try.timeout_ns = FENCELOCK_TRY;
    FAILS(FENCELOCK_CONTENDED, fencelock_semaphore_acquire, mine, 1, &try, &none);
    OK(fencelock_semaphore_acquire_async, mine, 1, NULL, NULL, post, &small, NULL);
    OK(fencelock_hold_release, two);
    fencelock_hold *three = collect(&large).hold;
    CHECK(atomic_load(&small.count) == 0 && available(mine) == 0);
    OK(fencelock_hold_release, one);
    fencelock_hold *last = collect(&small).hold;
    CHECK(token_of(last) > token_of(three));

    // What does not agree, or makes no sense.
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_acquire, mine, 0, NULL, &none);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_acquire, mine, 5, NULL, &none);
    fencelock_acquire_options owner = explicitly("me", FENCELOCK_TRY);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_acquire, mine, 1, &owner, &none);
    fencelock_semaphore *other = NULL;
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_semaphore, here, name, FENCELOCK_NTS, 0, &other);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_semaphore, here, name, FENCELOCK_NTS, 1000001,
          &other);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_semaphore, here, "", 0, 2, &other);
    CHECK(other == NULL);
    OK(fencelock_client_semaphore, here, name, FENCELOCK_NTS, 9, &other);
    FAILS(FENCELOCK_MISCONFIGURED, fencelock_semaphore_acquire, other, 1, &try, &none);
    fencelock_lock *lock = NULL;
    OK(fencelock_client_lock, there, name, FENCELOCK_NTS, &lock);
    FAILS(FENCELOCK_MISCONFIGURED, fencelock_lock_acquire, lock, &try, &none);
    OK(fencelock_hold_release, three);
    OK(fencelock_hold_release, last);
    OK(fencelock_hold_release, taking(other, 9, BOUND));

    IS(FENCELOCK_OK, fencelock_lock_free(lock));
    IS(FENCELOCK_OK, fencelock_semaphore_free(other));
    IS(FENCELOCK_OK, fencelock_semaphore_free(mine));
    IS(FENCELOCK_OK, fencelock_semaphore_free(theirs));
    end(here);
    end(there);
}

static void a_semaphore_is_resized_while_it_is_in_use(void) {
    if (!permits()) return;
    fencelock_client *client = client_of_store();
    fencelock_semaphore *two = NULL, *three = NULL;
    char name[200];
    snprintf(name, sizeof name, "%s", name_of("resized"));
    OK(fencelock_client_semaphore, client, name, FENCELOCK_NTS, 2, &two);
    OK(fencelock_client_semaphore, client, name, FENCELOCK_NTS, 3, &three);
    bool resized = true;
    OK(fencelock_semaphore_resize, two, 3, &resized);
    CHECK(!resized); // nobody is there
    fencelock_hold *both = taking(two, 2, FENCELOCK_TRY), *none = NULL;
    struct mail mail = {0};
    OK(fencelock_semaphore_acquire_async, two, 1, NULL, NULL, post, &mail, NULL);
    UNTIL(queued(client, name) == 1);
    OK(fencelock_semaphore_resize, two, 3, &resized);
    CHECK(resized);
    fencelock_hold *one = collect(&mail).hold;
    fencelock_acquire_options try = fresh(FENCELOCK_TRY);
    FAILS(FENCELOCK_MISCONFIGURED, fencelock_semaphore_acquire, two, 1, &try, &none);
    FAILS(FENCELOCK_CONTENDED, fencelock_semaphore_acquire, three, 1, &try, &none);
    OK(fencelock_semaphore_resize_async, three, 4, post, &mail);
    CHECK(collect(&mail).number == 1);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_resize, two, 0, &resized);
    OK(fencelock_hold_release, both);
    OK(fencelock_hold_release, one);
    IS(FENCELOCK_OK, fencelock_semaphore_free(two));
    IS(FENCELOCK_OK, fencelock_semaphore_free(three));
    end(client);
}

/* The id and the token of the hold of so many permits. */
static uint64_t hold_of(fencelock_client *client, const char *name, uint32_t count, char *id) {
    fencelock_inspection *seen = NULL;
    OK(fencelock_client_inspect, client, name, FENCELOCK_NTS, &seen);
    uint64_t token = 0;
    for (size_t i = 0; token == 0; i++) {
        fencelock_hold_info info = {.size = sizeof info};
        IS(FENCELOCK_OK, fencelock_inspection_hold(seen, i, &info));
        if (info.permits != count) continue;
        CHECK(info.id.length == 32);
        memcpy(id, info.id.data, 33);
        token = info.token;
    }
    IS(FENCELOCK_OK, fencelock_inspection_free(seen));
    return token;
}

static void a_handle_follows_the_number_of_those_who_hold(void) {
    if (!permits()) return;
    fencelock_client *client = client_of_store();
    fencelock_semaphore *three = NULL, *nine = NULL, *following = NULL;
    char name[200];
    snprintf(name, sizeof name, "%s", name_of("adopting"));
    OK(fencelock_client_semaphore, client, name, FENCELOCK_NTS, 3, &three);
    OK(fencelock_client_semaphore, client, name, FENCELOCK_NTS, 9, &nine);
    OK(fencelock_semaphore_adopting, nine, &following);
    fencelock_hold *two = taking(three, 2, FENCELOCK_TRY), *none = NULL;
    fencelock_acquire_options try = fresh(FENCELOCK_TRY);
    FAILS(FENCELOCK_MISCONFIGURED, fencelock_semaphore_acquire, nine, 1, &try, &none);
    fencelock_hold *one = taking(following, 1, FENCELOCK_TRY);
    FAILS(FENCELOCK_CONTENDED, fencelock_semaphore_acquire, following, 1, &try, &none);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_acquire, following, 4, &try, &none);
    uint32_t free = 9;
    OK(fencelock_semaphore_available_permits, following, &free);
    CHECK(free == 0);
    OK(fencelock_hold_release, two);
    OK(fencelock_hold_release, one);
    OK(fencelock_hold_release, taking(following, 9, FENCELOCK_TRY)); // its own, when nobody is there
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_semaphore_adopting, nine, NULL);
    IS(FENCELOCK_OK, fencelock_semaphore_free(nine));
    IS(FENCELOCK_OK, fencelock_semaphore_free(three));
    IS(FENCELOCK_OK, fencelock_semaphore_free(following));
    end(client);
}

static void one_hold_of_several_is_broken(void) {
    if (!permits()) return;
    fencelock_client *client = client_of_store();
    fencelock_semaphore *four = NULL;
    char name[200], id[33];
    snprintf(name, sizeof name, "%s", name_of("broken"));
    OK(fencelock_client_semaphore, client, name, FENCELOCK_NTS, 4, &four);
    fencelock_hold *one = taking(four, 1, FENCELOCK_TRY), *two = taking(four, 2, FENCELOCK_TRY);
    uint64_t ended = 9, changed_hands = 9;
    uint64_t token = hold_of(client, name, 2, id);
    FAILS(FENCELOCK_INVALID_ARGUMENT, fencelock_client_break_hold, client, name, FENCELOCK_NTS, token,
          "two", FENCELOCK_NTS, &ended, &changed_hands);
    OK(fencelock_client_break_hold, client, name, FENCELOCK_NTS, token, id, FENCELOCK_NTS, &ended,
       &changed_hands);
    CHECK(ended == 1 && changed_hands == 0);
    IS(FENCELOCK_LOST, fencelock_hold_release(two, NULL));
    bool valid = false;
    IS(FENCELOCK_OK, fencelock_hold_is_valid(one, &valid));
    CHECK(valid);
    token = hold_of(client, name, 1, id);
    struct mail mail = {0};
    OK(fencelock_client_break_hold_async, client, name, FENCELOCK_NTS, token, id, FENCELOCK_NTS, post,
       &mail);
    CHECK(collect(&mail).number == 1);
    IS(FENCELOCK_LOST, fencelock_hold_release(one, NULL));
    IS(FENCELOCK_OK, fencelock_semaphore_free(four));
    end(client);
}

int hold_permits(const char *name) {
    fencelock_connect_options options = FENCELOCK_CONNECT_OPTIONS_INIT;
    options.lease_ns = 3 * FENCELOCK_SECOND;
    fencelock_client *client = NULL;
    fencelock_semaphore *semaphore = NULL;
    OK(fencelock_connect, store, FENCELOCK_NTS, &options, &client);
    OK(fencelock_client_semaphore, client, name, FENCELOCK_NTS, 3, &semaphore);
    taking(semaphore, 2, BOUND);
    CHECK(write(1, "held", 4) == 4);
    for (;;) pause();
}

static void permits_of_a_killed_process_come_back(void) {
    if (!permits()) return;
    fencelock_client *client = client_of_store();
    fencelock_semaphore *semaphore = NULL;
    char name[200], word[4];
    snprintf(name, sizeof name, "%s", name_of("killed"));
    OK(fencelock_client_semaphore, client, name, FENCELOCK_NTS, 3, &semaphore);
    if (capabilities_of(client).processes) {
        int ends[2];
        CHECK(pipe(ends) == 0);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            dup2(ends[1], 1);
            execl("/proc/self/exe", "abi-test", store, "--holds", name, (char *)NULL);
            _exit(3);
        }
        CHECK(close(ends[1]) == 0);
        CHECK(read(ends[0], word, sizeof word) == 4);
        CHECK(available(semaphore) == 1);
        fencelock_hold *one = taking(semaphore, 1, FENCELOCK_TRY), *none = NULL;
        fencelock_acquire_options try = fresh(FENCELOCK_TRY);
        FAILS(FENCELOCK_CONTENDED, fencelock_semaphore_acquire, semaphore, 1, &try, &none);
        CHECK(kill(pid, SIGKILL) == 0);
        CHECK(waitpid(pid, NULL, 0) == pid && close(ends[0]) == 0);
        OK(fencelock_hold_release, taking(semaphore, 2, BOUND));
        OK(fencelock_hold_release, one);
    }
    CHECK(available(semaphore) == 3);
    IS(FENCELOCK_OK, fencelock_semaphore_free(semaphore));
    end(client);
}

static void an_inspection_says_who_reads_and_who_has_permits(void) {
    if (!shared() || !permits()) return;
    fencelock_client *client = client_of_store();
    char name[200];
    snprintf(name, sizeof name, "%s", name_of("seen"));
    fencelock_rwlock *rwlock = rwlock_of(client, name);
    fencelock_hold *one = reading(rwlock, explicitly("me", FENCELOCK_TRY));
    fencelock_hold *two = reading(rwlock, fresh(FENCELOCK_TRY));
    fencelock_acquire_options wait = fresh(BOUND);
    struct mail mail = {0};
    OK(fencelock_rwlock_acquire_write_async, rwlock, &wait, NULL, post, &mail, NULL);
    UNTIL(queued(client, name) == 1);
    fencelock_inspection *inspection = NULL;
    fencelock_lock_info lock = {.size = sizeof lock};
    fencelock_hold_info hold = {.size = sizeof hold};
    fencelock_waiter_info waiter = {.size = sizeof waiter};
    OK(fencelock_client_inspect, client, name, FENCELOCK_NTS, &inspection);
    IS(FENCELOCK_OK, fencelock_inspection_lock(inspection, &lock));
    CHECK(lock.hold_count == 2 && lock.waiter_count == 1);
    uint64_t tokens[2];
    bool owned = false;
    for (size_t i = 0; i < 2; i++) {
        IS(FENCELOCK_OK, fencelock_inspection_hold(inspection, i, &hold));
        CHECK(hold.mode == FENCELOCK_MODE_SHARED && hold.permits == 0 && hold.of == 0);
        tokens[i] = hold.token;
        owned |= hold.owner.data != NULL && strcmp(hold.owner.data, "me") == 0;
    }
    CHECK(tokens[0] + tokens[1] == token_of(one) + token_of(two));
    CHECK(owned == capabilities_of(client).owners);
    IS(FENCELOCK_OK, fencelock_inspection_waiter(inspection, 0, &waiter));
    CHECK(waiter.mode == FENCELOCK_MODE_EXCLUSIVE && waiter.permits == 0);
    IS(FENCELOCK_OK, fencelock_inspection_free(inspection));
    OK(fencelock_hold_release, one);
    OK(fencelock_hold_release, two);
    OK(fencelock_hold_release, collect(&mail).hold);
    IS(FENCELOCK_OK, fencelock_rwlock_free(rwlock));

    fencelock_semaphore *semaphore = NULL;
    snprintf(name, sizeof name, "%s", name_of("seen"));
    OK(fencelock_client_semaphore, client, name, FENCELOCK_NTS, 5, &semaphore);
    one = taking(semaphore, 4, FENCELOCK_TRY);
    OK(fencelock_semaphore_acquire_async, semaphore, 2, NULL, NULL, post, &mail, NULL);
    UNTIL(queued(client, name) == 1);
    OK(fencelock_client_inspect, client, name, FENCELOCK_NTS, &inspection);
    IS(FENCELOCK_OK, fencelock_inspection_hold(inspection, 0, &hold));
    CHECK(hold.mode == FENCELOCK_MODE_PERMITS && hold.permits == 4 && hold.of == 5);
    IS(FENCELOCK_OK, fencelock_inspection_waiter(inspection, 0, &waiter));
    CHECK(waiter.mode == FENCELOCK_MODE_PERMITS && waiter.permits == 2);
    IS(FENCELOCK_OK, fencelock_inspection_free(inspection));
    OK(fencelock_hold_release, one);
    OK(fencelock_hold_release, collect(&mail).hold);
    IS(FENCELOCK_OK, fencelock_semaphore_free(semaphore));
    end(client);
}

const struct test mode_tests[] = {
    {"readers_share_and_a_writer_waits_its_turn", readers_share_and_a_writer_waits_its_turn},
    {"who_reads_and_would_write_is_told_at_once", who_reads_and_would_write_is_told_at_once},
    {"two_threads_of_one_owner_read_as_one", two_threads_of_one_owner_read_as_one},
    {"a_reader_that_waits_is_cancelled", a_reader_that_waits_is_cancelled},
    {"a_loss_is_told_to_the_reader_that_it_concerns",
     a_loss_is_told_to_the_reader_that_it_concerns},
    {"a_writer_is_made_a_reader_and_back", a_writer_is_made_a_reader_and_back},
    {"who_reads_inside_a_write_and_leaves_it_reads_on",
     who_reads_inside_a_write_and_leaves_it_reads_on},
    {"the_sides_are_locks", the_sides_are_locks},
    {"closing_tells_readers_and_takers_of_permits", closing_tells_readers_and_takers_of_permits},
    {"permits_are_counted_and_nobody_passes_a_larger_request",
     permits_are_counted_and_nobody_passes_a_larger_request},
    {"a_semaphore_is_resized_while_it_is_in_use", a_semaphore_is_resized_while_it_is_in_use},
    {"a_handle_follows_the_number_of_those_who_hold",
     a_handle_follows_the_number_of_those_who_hold},
    {"one_hold_of_several_is_broken", one_hold_of_several_is_broken},
    {"permits_of_a_killed_process_come_back", permits_of_a_killed_process_come_back},
    {"an_inspection_says_who_reads_and_who_has_permits",
     an_inspection_says_who_reads_and_who_has_permits},
    {NULL, NULL},
};
