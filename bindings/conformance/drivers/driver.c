// The driver of C: says what fencelock.h says. See ../README.md for the protocol.
#include <fencelock.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// What a tag stands for: a client, a wait or a hold. Kept for ever.
struct thing {
    char tag[64], lock[128];
    fencelock_client *client;
    fencelock_operation *wait;
    fencelock_hold *hold;
    bool drains;
    struct thing *next;
};

static struct thing *things;
static pthread_mutex_t using = PTHREAD_MUTEX_INITIALIZER;

static int64_t clock_of(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void say(const char *event, const char *tag, const char *more) {
    char line[1024];
    snprintf(line, sizeof line, "%" PRId64 " %" PRId64 " %s %s %s\n", clock_of(CLOCK_MONOTONIC),
             clock_of(CLOCK_REALTIME), event, tag, more);
    if (write(1, line, strlen(line)) < 0) _exit(0);
}

static void failed(const char *event, const char *tag, fencelock_status status, fencelock_error *error) {
    char more[700];
    snprintf(more, sizeof more, "kind=%s why=%s", fencelock_status_name(status),
             fencelock_error_message(error));
    for (char *at = strstr(more, "why="); *at; at++)
        if (*at == ' ') *at = '_';
    fencelock_error_free(error);
    say(event, tag, more);
}

// How far a hold is trusted, by a clock that was read before.
static const char *trust(fencelock_hold *hold, char text[96]) {
    int64_t now = clock_of(CLOCK_MONOTONIC), remaining = 0;
    bool valid = false;
    fencelock_hold_remaining(hold, &remaining);
    fencelock_hold_is_valid(hold, &valid);
    snprintf(text, 96, "until=%" PRId64 " valid=%s", now + remaining, valid ? "true" : "false");
    return text;
}

static struct thing *find(const char *tag) {
    struct thing *thing = things;
    while (thing && strcmp(thing->tag, tag) != 0) thing = thing->next;
    return thing;
}

static struct thing *make(const char *tag) {
    struct thing *thing = calloc(1, sizeof *thing);
    snprintf(thing->tag, sizeof thing->tag, "%s", tag);
    thing->next = things;
    return things = thing;
}

static void lost(fencelock_loss reason, void *data) {
    static const char *const names[] = {"", "ended", "not_renewed", "gone", "broken", "closed"};
    char more[40];
    snprintf(more, sizeof more, "reason=%s", names[reason]);
    say("lost", ((struct thing *)data)->tag, more);
}

static void opened(const fencelock_completion *completion, void *data) {
    struct thing *thing = data;
    fencelock_text *id = NULL;
    fencelock_string text = {NULL, 0};
    char more[200];
    if (completion->status) {
        failed("refused", thing->tag, completion->status, completion->error);
        return;
    }
    thing->client = completion->client;
    fencelock_client_id(thing->client, &id, NULL);
    fencelock_text_get(id, &text);
    snprintf(more, sizeof more, "id=%s knows=modes,conversions,resize", text.data);
    fencelock_text_free(id);
    say("opened", thing->tag, more);
}

static void ended(const fencelock_completion *completion, void *data) {
    static const char *const abandoned[] = {"no", "yes", "unknown"};
    struct thing *thing = data;
    fencelock_abandoned previous = FENCELOCK_ABANDONED_UNKNOWN;
    fencelock_string name = {NULL, 0};
    uint64_t token = 0;
    bool reentry = false;
    char more[400], trusted[96];
    if (completion->status) {
        failed("failed", thing->tag, completion->status, completion->error);
        return;
    }
    fencelock_hold *hold = completion->hold;
    fencelock_hold_name(hold, &name);
    fencelock_hold_token(hold, &token);
    fencelock_hold_is_reentry(hold, &reentry);
    fencelock_hold_previous_abandoned(hold, &previous);
    snprintf(more, sizeof more, "lock=%s token=%" PRIu64 " abandoned=%s reentry=%s %s", name.data, token,
             abandoned[previous], reentry ? "true" : "false", trust(hold, trusted));
    // A release may be asked for as soon as this is said, and frees the hold.
    pthread_mutex_lock(&using);
    say("granted", thing->tag, more);
    fencelock_hold_on_lost(hold, lost, thing, NULL, NULL);
    thing->hold = hold;
    pthread_mutex_unlock(&using);
}

static void released(const fencelock_completion *completion, void *data) {
    struct thing *thing = data;
    if (completion->status) failed("unreleased", thing->tag, completion->status, completion->error);
    else say("released", thing->tag, "");
}

static void converted(const fencelock_completion *completion, void *data) {
    static const char *const modes[] = {"exclusive", "shared", "permits"};
    struct thing *thing = data;
    uint64_t token = 0;
    fencelock_mode mode = 0;
    char more[80];
    if (completion->status) {
        failed("unconverted", thing->tag, completion->status, completion->error);
        return;
    }
    pthread_mutex_lock(&using);
    fencelock_hold_token(thing->hold, &token);
    fencelock_hold_mode(thing->hold, &mode);
    pthread_mutex_unlock(&using);
    snprintf(more, sizeof more, "token=%" PRIu64 " mode=%s", token, modes[mode]);
    say("converted", thing->tag, more);
}

static void resized(const fencelock_completion *completion, void *data) {
    struct thing *thing = data;
    if (completion->status) failed("failed", thing->tag, completion->status, completion->error);
    else say("resized", thing->tag, completion->number ? "used=yes" : "used=no");
}

static void closed(const fencelock_completion *completion, void *data) {
    struct thing *thing = data;
    const char *well = thing->drains ? "all=yes" : "all=silent";
    fencelock_error_free(completion->error);
    say("closed", thing->tag, completion->status == FENCELOCK_TIMED_OUT ? "all=no" : well);
}

static void listed(const fencelock_completion *completion, void *data) {
    struct thing *thing = data;
    char more[40];
    size_t count = 0;
    if (completion->status) {
        failed("failed", thing->tag, completion->status, completion->error);
        return;
    }
    fencelock_names_count(completion->names, &count);
    fencelock_names_free(completion->names);
    snprintf(more, sizeof more, "count=%zu", count);
    say("listed", thing->tag, more);
}

static int64_t span(const char *text) { return strtoll(text, NULL, 10) * FENCELOCK_MILLISECOND; }

static void acquire(struct thing *thing, fencelock_client *client, char *words[], int count) {
    fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    fencelock_lock *lock = NULL;
    fencelock_rwlock *rwlock = NULL;
    fencelock_semaphore *semaphore = NULL, *adopting = NULL;
    fencelock_error *error = NULL;
    fencelock_status status;
    const char *mode = "";
    bool adopts = false;
    options.owner_kind = FENCELOCK_OWNER_FRESH;
    for (int at = 4; at < count; at++) {
        if (strcmp(words[at], "wait=try") == 0) options.timeout_ns = FENCELOCK_TRY;
        else if (strcmp(words[at], "wait=endless") == 0) options.timeout_ns = INT64_MAX;
        else if (strncmp(words[at], "wait=", 5) == 0 && strcmp(words[at], "wait=forever") != 0)
            options.timeout_ns = span(words[at] + 5);
        else if (strncmp(words[at], "lease=", 6) == 0) options.lease_ns = span(words[at] + 6);
        else if (strncmp(words[at], "mode=", 5) == 0) mode = words[at] + 5;
        else if (strcmp(words[at], "adopt=yes") == 0) adopts = true;
        else if (strncmp(words[at], "owner=", 6) == 0) {
            options.owner_kind = FENCELOCK_OWNER_EXPLICIT;
            options.owner = words[at] + 6;
            options.owner_length = FENCELOCK_NTS;
        }
    }
    if (strcmp(mode, "shared") == 0) {
        status = fencelock_client_rwlock(client, words[3], FENCELOCK_NTS, &rwlock, &error);
        if (!status)
            status = fencelock_rwlock_acquire_read_async(rwlock, &options, NULL, ended, thing, &thing->wait,
                                                         &error);
    } else if (strncmp(mode, "permits:", 8) == 0) {
        char *of = NULL;
        uint32_t permits = (uint32_t)strtoul(mode + 8, &of, 10);
        status = fencelock_client_semaphore(client, words[3], FENCELOCK_NTS,
                                            (uint32_t)strtoul(of + 1, NULL, 10), &semaphore, &error);
        if (!status && adopts) status = fencelock_semaphore_adopting(semaphore, &adopting, &error);
        if (!status)
            status = fencelock_semaphore_acquire_async(adopts ? adopting : semaphore, permits, &options, NULL,
                                                       ended, thing, &thing->wait, &error);
    } else {
        status = fencelock_client_lock(client, words[3], FENCELOCK_NTS, &lock, &error);
        if (!status)
            status = fencelock_lock_acquire_async(lock, &options, NULL, ended, thing, &thing->wait, &error);
    }
    if (status) failed("failed", thing->tag, status, error);
    fencelock_semaphore_free(adopting);
    fencelock_semaphore_free(semaphore);
    fencelock_rwlock_free(rwlock);
    fencelock_lock_free(lock);
}

static void resize(struct thing *thing, fencelock_client *client, const char *name, const char *of) {
    fencelock_semaphore *semaphore = NULL;
    fencelock_error *error = NULL;
    uint32_t permits = (uint32_t)strtoul(of, NULL, 10);
    char more[200];
    snprintf(more, sizeof more, "lock=%s of=%s", name, of);
    say("resize-asked", thing->tag, more);
    fencelock_status status = fencelock_client_semaphore(client, name, FENCELOCK_NTS, permits, &semaphore, &error);
    if (!status) status = fencelock_semaphore_resize_async(semaphore, permits, resized, thing, &error);
    if (status) failed("failed", thing->tag, status, error);
    fencelock_semaphore_free(semaphore);
}

// Begins an acquire here, which ends on another thread, and enters again here: the owner is this thread.
static void relay(struct thing *thing, fencelock_client *client, const char *name) {
    fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    fencelock_lock *lock = NULL;
    char more[300], tag[80];
    fencelock_hold *hold = NULL;
    snprintf(more, sizeof more, "client=c lock=%s caller=%s", name, thing->tag);
    say("asked", thing->tag, more);
    fencelock_client_lock(client, name, FENCELOCK_NTS, &lock, NULL);
    fencelock_lock_acquire_async(lock, &options, NULL, ended, thing, &thing->wait, NULL);
    while (hold == NULL) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        pthread_mutex_lock(&using);
        hold = thing->hold;
        pthread_mutex_unlock(&using);
    }
    snprintf(tag, sizeof tag, "%s-again", thing->tag);
    thing = make(tag);
    say("asked", tag, more);
    options.timeout_ns = FENCELOCK_TRY;
    fencelock_completion completion = {.status = FENCELOCK_OK};
    completion.status = fencelock_lock_acquire(lock, &options, &completion.hold, &completion.error);
    ended(&completion, thing);
    fencelock_lock_free(lock);
}

// What is no name of a lock.
static void name(const char *tag, fencelock_client *client, const char *which) {
    char longest[513];
    const char *text = which[0] == 'n' ? "a\0b" : which[0] == 'h' ? "half \xED\xA0\xBD" : "";
    size_t length = which[0] == 'n' ? 3 : strlen(text);
    fencelock_lock *lock = NULL;
    fencelock_error *error = NULL;
    memset(longest, 'x', sizeof longest);
    if (which[0] == 'l') text = longest, length = sizeof longest;
    fencelock_status status = fencelock_client_lock(client, text, length, &lock, &error);
    if (status) failed("failed", tag, status, error);
    else say("named", tag, "");
    fencelock_lock_free(lock);
}

static void obey(char *words[], int count) {
    const char *verb = words[0], *tag = words[1];
    char more[600] = "";
    struct thing *thing = find(tag), *client = count > 3 ? find(words[2]) : NULL;
    fencelock_error *error = NULL;
    fencelock_status status = FENCELOCK_OK;
    pthread_mutex_lock(&using);
    fencelock_hold *hold = thing ? thing->hold : NULL;
    pthread_mutex_unlock(&using);
    if (strcmp(verb, "open") == 0) {
        thing = make(tag);
        status = fencelock_connect_async(words[2], FENCELOCK_NTS, NULL, opened, thing, &error);
        if (status) failed("refused", tag, status, error);
    } else if (client && (strcmp(verb, "acquire") == 0 || strcmp(verb, "attach") == 0)) {
        snprintf(more, sizeof more, "client=%s lock=%s", words[2], words[3]);
        for (int at = 4; at < count; at++) {
            size_t used = strlen(more);
            snprintf(more + used, sizeof more - used, " %s", words[at]);
        }
        say("asked", tag, more);
        thing = make(tag);
        if (verb[1] == 'c') acquire(thing, client->client, words, count);
        else if ((status = fencelock_client_attach_async(client->client, words[3], FENCELOCK_NTS, NULL,
                                                         ended, thing, &thing->wait, &error)))
            failed("failed", tag, status, error);
    } else if (thing && strcmp(verb, "cancel") == 0) {
        fencelock_operation_cancel(thing->wait);
    } else if (hold && strcmp(verb, "look") == 0) {
        say("seen", tag, trust(hold, more));
    } else if (hold && strcmp(verb, "ticket") == 0) {
        fencelock_text *ticket = NULL;
        fencelock_string text = {NULL, 0};
        if ((status = fencelock_hold_ticket(hold, &ticket, &error))) {
            failed("failed", tag, status, error);
            return;
        }
        fencelock_text_get(ticket, &text);
        snprintf(more, sizeof more, "text=%s", text.data);
        fencelock_text_free(ticket);
        say("ticket", tag, more);
    } else if (hold && strcmp(verb, "release") == 0) {
        thing->hold = NULL;
        say("release-asked", tag, trust(hold, more));
        status = fencelock_hold_release_async(hold, NULL, released, thing, &error);
        if (status) failed("unreleased", tag, status, error);
    } else if (hold && (strcmp(verb, "downgrade") == 0 || strcmp(verb, "upgrade") == 0)) {
        bool down = verb[0] == 'd';
        if (down) say("downgrade-asked", tag, trust(hold, more));
        status = down ? fencelock_hold_downgrade_async(hold, NULL, converted, thing, &error)
                      : fencelock_hold_try_upgrade_async(hold, NULL, converted, thing, &error);
        if (status) failed("unconverted", tag, status, error);
    } else if (hold && strcmp(verb, "drop") == 0) {
        thing->hold = NULL;
        say("drop-asked", tag, trust(hold, more));
        fencelock_hold_free(hold);
        say("dropped", tag, "");
    } else if (client && strcmp(verb, "relay") == 0) {
        relay(make(tag), client->client, words[3]);
    } else if (client && strcmp(verb, "resize") == 0) {
        resize(make(tag), client->client, words[3], words[4]);
    } else if (client && strcmp(verb, "list") == 0) {
        status = fencelock_client_list_async(client->client, NULL, 0, (size_t)atoi(words[3]), listed,
                                             make(tag), &error);
        if (status) failed("failed", tag, status, error);
    } else if (client && strcmp(verb, "name") == 0) {
        name(tag, client->client, words[3]);
    } else if (thing && strcmp(verb, "close") == 0) {
        int64_t drain = 0;
        if (count > 2) drain = strcmp(words[2], "drain=endless") == 0 ? FENCELOCK_FOREVER : span(words[2] + 6);
        thing->drains = drain != 0;
        status = fencelock_client_close_async(thing->client, drain, closed, thing, &error);
        if (status) failed("failed", tag, status, error);
    }
}

int main(void) {
    char line[2048], *words[16];
    while (fgets(line, sizeof line, stdin)) {
        int count = 0;
        for (char *word = strtok(line, " \n"); word && count < 16; word = strtok(NULL, " \n"))
            words[count++] = word;
        if (count > 1) obey(words, count);
    }
    _exit(0); // Whoever tells us what to do has gone.
}
