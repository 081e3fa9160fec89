// Runs the tests of the C ABI on one store: `abi-test URL [WORD]`; with a word, those whose name has
// it. Each says `ok NAME`; the first that fails ends the program.
#include "check.h"


const char *store = "memory:";
static const char *running = "nothing";

void fail(const char *file, int line, const char *what, const char *detail) {
    printf("FAILED %s: %s:%d: %s %s\n", running, file, line, what, detail);
    fflush(stdout);
    _exit(1);
}

void check_error(const char *file, int line, fencelock_error *error, fencelock_status status) {
    fencelock_error_info info = {.size = sizeof info};
    if (fencelock_error_get(error, &info) != FENCELOCK_OK) fail(file, line, "no error object", "");
    bool retryable = status == FENCELOCK_CONTENDED || status == FENCELOCK_TIMED_OUT ||
                     status == FENCELOCK_UNAVAILABLE;
    if (info.code != status || info.retryable != retryable ||
        strcmp(info.name.data, fencelock_status_name(status)) != 0 ||
        strlen(info.name.data) != info.name.length || info.message.length < 10 ||
        strlen(info.message.data) != info.message.length ||
        strcmp(info.message.data, fencelock_error_message(error)) != 0)
        fail(file, line, "a wrong error object", info.message.data);
    IS(FENCELOCK_OK, fencelock_error_free(error));
}

fencelock_client *client_of_store(void) {
    fencelock_client *client = NULL;
    OK(fencelock_connect, store, FENCELOCK_NTS, NULL, &client);
    CHECK(client != NULL);
    return client;
}

fencelock_capabilities capabilities_of(fencelock_client *client) {
    fencelock_capabilities known = {.size = sizeof known};
    IS(FENCELOCK_OK, fencelock_client_capabilities(client, &known));
    return known;
}

const char *name_of(const char *stem) {
    static _Thread_local char name[200];
    static atomic_int next;
    snprintf(name, sizeof name, "%s/%d/%d", stem, (int)getpid(), atomic_fetch_add(&next, 1));
    return name;
}

struct pair open_pair(const char *stem) {
    struct pair pair = {client_of_store(), NULL};
    OK(fencelock_client_lock, pair.client, name_of(stem), FENCELOCK_NTS, &pair.lock);
    return pair;
}

void close_pair(struct pair pair) {
    OK(fencelock_client_close, pair.client, 0);
    IS(FENCELOCK_OK, fencelock_lock_free(pair.lock));
    IS(FENCELOCK_OK, fencelock_client_free(pair.client));
}

fencelock_acquire_options fresh(int64_t timeout_ns) {
    fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    options.owner_kind = FENCELOCK_OWNER_FRESH;
    options.timeout_ns = timeout_ns;
    return options;
}

fencelock_acquire_options local(uint64_t number, int64_t timeout_ns) {
    fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    options.owner_kind = FENCELOCK_OWNER_LOCAL;
    options.owner_number = number;
    options.timeout_ns = timeout_ns;
    return options;
}

fencelock_acquire_options explicitly(const char *owner, int64_t timeout_ns) {
    fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    options.owner_kind = FENCELOCK_OWNER_EXPLICIT;
    options.owner = owner;
    options.owner_length = FENCELOCK_NTS;
    options.timeout_ns = timeout_ns;
    return options;
}

fencelock_hold *acquire(fencelock_lock *lock, fencelock_acquire_options options) {
    fencelock_hold *hold = NULL;
    OK(fencelock_lock_acquire, lock, &options, &hold);
    CHECK(hold != NULL);
    return hold;
}

uint64_t token_of(fencelock_hold *hold) {
    uint64_t token = 0;
    IS(FENCELOCK_OK, fencelock_hold_token(hold, &token));
    CHECK(token > 0 && token < UINT64_C(1) << 53);
    return token;
}

void post(const fencelock_completion *completion, void *user_data) {
    struct mail *mail = user_data;
    CHECK(completion->size == sizeof *completion && completion->ended);
    mail->last = *completion;
    mail->thread = pthread_self();
    atomic_fetch_add(&mail->count, 1);
}

fencelock_completion collect(struct mail *mail) {
    UNTIL(atomic_load(&mail->count) > 0);
    CHECK(atomic_exchange(&mail->count, 0) == 1);
    CHECK(!pthread_equal(mail->thread, pthread_self()));
    return mail->last;
}

void *wait_for_it(void *user_data) {
    struct waiting *waiting = user_data;
    fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    options.timeout_ns = waiting->timeout_ns;
    options.cancel = waiting->cancel;
    fencelock_hold *hold = NULL;
    fencelock_error *error = NULL;
    if (waiting->enter)
        waiting->status = fencelock_lock_enter(waiting->lock, &options, NULL, &error);
    else
        waiting->status = fencelock_lock_acquire(waiting->lock, &options, &hold, &error);
    CHECK(hold == NULL);
    check_error(__FILE__, __LINE__, error, waiting->status);
    atomic_store(&waiting->ended, 1);
    return NULL;
}

uint64_t waiters(fencelock_client *client) {
    fencelock_counters counters = {.size = sizeof counters};
    IS(FENCELOCK_OK, fencelock_client_counters(client, &counters));
    return counters.waiting;
}

static void run(const struct test *tests, const char *word) {
    for (; tests->name != NULL; tests++) {
        if (word != NULL && strstr(tests->name, word) == NULL) continue;
        running = tests->name;
        uint64_t before = fencelock_live_handles();
        tests->run();
        // What callbacks still have.
        UNTIL(fencelock_live_handles() == before);
        printf("ok %s\n", tests->name);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: abi-test URL [WORD]\n");
        return 2;
    }
    store = argv[1];
    if (argc > 3 && strcmp(argv[2], "--holds") == 0) return hold_permits(argv[3]);
    const char *word = argc > 2 ? argv[2] : NULL;
    // First, while no other thread of this program is in the middle of a call.
    run(fork_tests, word);
    run(api_tests, word);
    run(misuse_tests, word);
    run(enter_tests, word);
    run(async_tests, word);
    run(cancel_tests, word);
    run(mode_tests, word);
    run(close_tests, word);
    run(thread_tests, word);
    running = "the last look at the handles";
    UNTIL(fencelock_live_handles() == 0);
    return 0;
}
