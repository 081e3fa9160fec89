/* The native methods of a client. */
#include <stdlib.h>

#include "fencelock_java.h"

static jstring native_version(JNIEnv *env, jclass native) {
    (void)native;
    return (*env)->NewStringUTF(env, fencelock_version()); /* ASCII */
}

static jlong native_liveHandles(JNIEnv *env, jclass native) {
    (void)env, (void)native;
    return (jlong)fencelock_live_handles();
}

/* What connecting needs, taken from Java. */
typedef struct connecting {
    bytes url, label, key_prefix;
    fencelock_connect_options options;
} connecting;

static bool connecting_open(JNIEnv *env, connecting *what, jbyteArray url, jlongArray numbers,
                            jbyteArray label, jbyteArray key_prefix) {
    what->options = (fencelock_connect_options)FENCELOCK_CONNECT_OPTIONS_INIT;
    what->url = what->label = what->key_prefix = (bytes){.data = NULL};
    /* The first that fails is the last: with its exception pending nothing may be asked of Java. */
    if (!bytes_open(env, &what->url, url) || !bytes_open(env, &what->label, label) ||
        !bytes_open(env, &what->key_prefix, key_prefix)) {
        return false;
    }
    jlong n[7];
    (*env)->GetLongArrayRegion(env, numbers, 0, 7, n);
    if ((*env)->ExceptionCheck(env)) return false;
    what->options.lease_ns = n[0];
    what->options.claim_ns = n[1];
    what->options.request_timeout_ns = n[2];
    what->options.connect_timeout_ns = n[3];
    what->options.local_run_time_ns = n[4];
    what->options.local_run_grants = n[5];
    what->options.max_waiters = n[6];
    what->options.label = what->label.data;
    what->options.label_length = what->label.length;
    what->options.key_prefix = what->key_prefix.data;
    what->options.key_prefix_length = what->key_prefix.length;
    return true;
}

static void connecting_close(connecting *what) {
    bytes_close(&what->url);
    bytes_close(&what->label);
    bytes_close(&what->key_prefix);
}

static jlong native_connect(JNIEnv *env, jclass native, jbyteArray url, jlongArray numbers,
                            jbyteArray label, jbyteArray key_prefix) {
    connecting what;
    fencelock_client *client = NULL;
    if (connecting_open(env, &what, url, numbers, label, key_prefix)) {
        fencelock_error *error = NULL;
        fencelock_status status =
            fencelock_connect(what.url.data, what.url.length, &what.options, &client, &error);
        thrown(env, native, status, error);
    }
    connecting_close(&what);
    return NUMBER(client);
}

static void native_connectAsync(JNIEnv *env, jclass native, jbyteArray url, jlongArray numbers,
                                jbyteArray label, jbyteArray key_prefix, jobject completion) {
    connecting what;
    jobject target = NULL;
    if (connecting_open(env, &what, url, numbers, label, key_prefix) &&
        (target = global_of(env, completion)) != NULL) {
        fencelock_error *error = NULL;
        fencelock_status status = fencelock_connect_async(
            what.url.data, what.url.length, &what.options, on_completion, target, &error);
        if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
    }
    connecting_close(&what);
}

static void native_close(JNIEnv *env, jclass native, jlong client, jlong drain) {
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_client_close(AS(client, client), drain, &error);
    thrown(env, native, status, error);
}

static void native_closeAsync(JNIEnv *env, jclass native, jlong client, jlong drain,
                              jobject completion) {
    fencelock_error *error = NULL;
    jobject target = global_of(env, completion);
    if (target == NULL) return;
    fencelock_status status =
        fencelock_client_close_async(AS(client, client), drain, on_completion, target, &error);
    if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
}

static jboolean native_isClosed(JNIEnv *env, jclass native, jlong client) {
    bool closed = false;
    thrown(env, native, fencelock_client_is_closed(AS(client, client), &closed), NULL);
    return closed;
}

static jboolean native_isIdle(JNIEnv *env, jclass native, jlong client) {
    bool idle = false;
    thrown(env, native, fencelock_client_is_idle(AS(client, client), &idle), NULL);
    return idle;
}

static void native_freeClient(JNIEnv *env, jclass native, jlong client) {
    (void)env, (void)native;
    fencelock_client_free(AS(client, client));
}

/* A text that a call gave, as a byte[]; frees it. */
static jbyteArray text_for_java(JNIEnv *env, jclass native, fencelock_status status,
                                fencelock_text *text, fencelock_error *error) {
    if (thrown(env, native, status, error)) return NULL;
    fencelock_string string = {NULL, 0};
    fencelock_text_get(text, &string);
    jbyteArray array = bytes_for_java(env, string);
    fencelock_text_free(text);
    return array;
}

static jbyteArray native_clientId(JNIEnv *env, jclass native, jlong client) {
    fencelock_text *text = NULL;
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_client_id(AS(client, client), &text, &error);
    return text_for_java(env, native, status, text, error);
}

static jbyteArray native_metrics(JNIEnv *env, jclass native, jlong client) {
    fencelock_text *text = NULL;
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_client_metrics(AS(client, client), &text, &error);
    return text_for_java(env, native, status, text, error);
}

static bool capabilities(JNIEnv *env, jclass native, jlong client,
                         fencelock_capabilities *capabilities) {
    capabilities->size = sizeof *capabilities;
    return !thrown(env, native, fencelock_client_capabilities(AS(client, client), capabilities),
                   NULL);
}

static jbyteArray native_storeName(JNIEnv *env, jclass native, jlong client) {
    fencelock_capabilities can = {0};
    return capabilities(env, native, client, &can) ? bytes_for_java(env, can.store) : NULL;
}

static jint native_capabilities(JNIEnv *env, jclass native, jlong client) {
    fencelock_capabilities can = {0};
    if (!capabilities(env, native, client, &can)) return 0;
    return can.processes | can.durable << 1 | can.owners << 2 | can.leases << 3 |
           can.abandoned << 4 | can.paths << 5 | can.shared << 6 | can.permits << 7;
}

static jlong native_ping(JNIEnv *env, jclass native, jlong client) {
    int64_t time = 0;
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_client_ping(AS(client, client), &time, &error);
    thrown(env, native, status, error);
    return time;
}

static void native_pingAsync(JNIEnv *env, jclass native, jlong client, jobject completion) {
    fencelock_error *error = NULL;
    jobject target = global_of(env, completion);
    if (target == NULL) return;
    fencelock_status status =
        fencelock_client_ping_async(AS(client, client), on_completion, target, &error);
    if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
}

static jlong native_breakLock(JNIEnv *env, jclass native, jlong client, jbyteArray name,
                              jlong token) {
    bytes text;
    uint64_t ended = 0, changed_hands = 0;
    if (bytes_open(env, &text, name)) {
        fencelock_error *error = NULL;
        fencelock_status status =
            fencelock_client_break(AS(client, client), text.data, text.length, (uint64_t)token,
                                   &ended, &changed_hands, &error);
        thrown(env, native, status, error);
    }
    bytes_close(&text);
    return changed_hands != 0 ? -(jlong)changed_hands : (jlong)ended;
}

static void native_breakLockAsync(JNIEnv *env, jclass native, jlong client, jbyteArray name,
                                  jlong token, jobject completion) {
    bytes text;
    jobject target = NULL;
    if (bytes_open(env, &text, name) && (target = global_of(env, completion)) != NULL) {
        fencelock_error *error = NULL;
        fencelock_status status =
            fencelock_client_break_async(AS(client, client), text.data, text.length,
                                         (uint64_t)token, on_completion, target, &error);
        if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
    }
    bytes_close(&text);
}

static jlong native_breakHold(JNIEnv *env, jclass native, jlong client, jbyteArray name,
                              jlong token, jbyteArray hold) {
    bytes text, id = {0};
    uint64_t ended = 0, changed_hands = 0;
    if (bytes_open(env, &text, name) && bytes_open(env, &id, hold)) {
        fencelock_error *error = NULL;
        fencelock_status status = fencelock_client_break_hold(
            AS(client, client), text.data, text.length, (uint64_t)token, id.data, id.length, &ended,
            &changed_hands, &error);
        thrown(env, native, status, error);
    }
    bytes_close(&id);
    bytes_close(&text);
    return changed_hands != 0 ? -(jlong)changed_hands : (jlong)ended;
}

static void native_breakHoldAsync(JNIEnv *env, jclass native, jlong client, jbyteArray name,
                                  jlong token, jbyteArray hold, jobject completion) {
    bytes text, id = {0};
    jobject target = NULL;
    if (bytes_open(env, &text, name) && bytes_open(env, &id, hold) &&
        (target = global_of(env, completion)) != NULL) {
        fencelock_error *error = NULL;
        fencelock_status status = fencelock_client_break_hold_async(
            AS(client, client), text.data, text.length, (uint64_t)token, id.data, id.length,
            on_completion, target, &error);
        if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
    }
    bytes_close(&id);
    bytes_close(&text);
}

static jlong native_list(JNIEnv *env, jclass native, jlong client, jbyteArray prefix,
                         jlong limit) {
    bytes text;
    fencelock_names *names = NULL;
    if (bytes_open(env, &text, prefix)) {
        fencelock_error *error = NULL;
        fencelock_status status =
            fencelock_client_list(AS(client, client), text.data, text.length,
                                  limit < 0 ? 0 : (size_t)limit, &names, &error);
        thrown(env, native, status, error);
    }
    bytes_close(&text);
    return NUMBER(names);
}

static void native_listAsync(JNIEnv *env, jclass native, jlong client, jbyteArray prefix,
                             jlong limit, jobject completion) {
    bytes text;
    jobject target = NULL;
    if (bytes_open(env, &text, prefix) && (target = global_of(env, completion)) != NULL) {
        fencelock_error *error = NULL;
        fencelock_status status = fencelock_client_list_async(
            AS(client, client), text.data, text.length, limit < 0 ? 0 : (size_t)limit,
            on_completion, target, &error);
        if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
    }
    bytes_close(&text);
}

/* A byte[][]; an entry without data is null. NULL: an exception is pending. */
static jobjectArray texts_for_java(JNIEnv *env, const fencelock_string *texts, size_t count) {
    jclass kind = (*env)->FindClass(env, "[B");
    if (kind == NULL) return NULL;
    jobjectArray array = (*env)->NewObjectArray(env, (jsize)count, kind, NULL);
    for (size_t i = 0; array != NULL && i < count; i++) {
        if (texts[i].data == NULL) continue;
        jbyteArray text = bytes_for_java(env, texts[i]);
        if (text == NULL) return NULL;
        (*env)->SetObjectArrayElement(env, array, (jsize)i, text);
        (*env)->DeleteLocalRef(env, text);
    }
    return array;
}

static void *allocate(JNIEnv *env, size_t count, size_t size) {
    void *memory = calloc(count + 1, size);
    if (memory == NULL) {
        jclass error = (*env)->FindClass(env, "java/lang/OutOfMemoryError");
        if (error != NULL) (*env)->ThrowNew(env, error, "no memory for a list");
    }
    return memory;
}

static jobjectArray native_takeNames(JNIEnv *env, jclass native, jlong handle) {
    fencelock_names *names = AS(names, handle);
    size_t count = 0;
    jobjectArray array = NULL;
    if (!thrown(env, native, fencelock_names_count(names, &count), NULL)) {
        fencelock_string *texts = allocate(env, count, sizeof *texts);
        if (texts != NULL) {
            for (size_t i = 0; i < count; i++) fencelock_names_get(names, i, &texts[i]);
            array = texts_for_java(env, texts, count);
            free(texts);
        }
    }
    fencelock_names_free(names);
    return array;
}

static void native_freeNames(JNIEnv *env, jclass native, jlong names) {
    (void)env, (void)native;
    fencelock_names_free(AS(names, names));
}

static jlong native_inspect(JNIEnv *env, jclass native, jlong client, jbyteArray name) {
    bytes text;
    fencelock_inspection *inspection = NULL;
    if (bytes_open(env, &text, name)) {
        fencelock_error *error = NULL;
        fencelock_status status = fencelock_client_inspect(AS(client, client), text.data,
                                                           text.length, &inspection, &error);
        thrown(env, native, status, error);
    }
    bytes_close(&text);
    return NUMBER(inspection);
}

static void native_inspectAsync(JNIEnv *env, jclass native, jlong client, jbyteArray name,
                                jobject completion) {
    bytes text;
    jobject target = NULL;
    if (bytes_open(env, &text, name) && (target = global_of(env, completion)) != NULL) {
        fencelock_error *error = NULL;
        fencelock_status status = fencelock_client_inspect_async(
            AS(client, client), text.data, text.length, on_completion, target, &error);
        if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
    }
    bytes_close(&text);
}

static jlongArray native_inspectionNumbers(JNIEnv *env, jclass native, jlong handle) {
    fencelock_inspection *inspection = AS(inspection, handle);
    fencelock_lock_info lock = {.size = sizeof lock};
    if (thrown(env, native, fencelock_inspection_lock(inspection, &lock), NULL)) return NULL;
    size_t count = 6 + 8 * lock.hold_count + 5 * lock.waiter_count;
    jlong *numbers = allocate(env, count, sizeof *numbers);
    if (numbers == NULL) return NULL;
    jlong *next = numbers;
    *next++ = (jlong)lock.token;
    *next++ = (jlong)lock.last_token;
    *next++ = lock.abandoned;
    *next++ = (jlong)lock.hold_count;
    *next++ = (jlong)lock.waiter_count;
    *next++ = (jlong)lock.waiting;
    for (size_t i = 0; i < lock.hold_count; i++) {
        fencelock_hold_info hold = {.size = sizeof hold};
        fencelock_inspection_hold(inspection, i, &hold);
        *next++ = hold.expires_in_ns;
        *next++ = hold.lease_ns;
        *next++ = hold.claim;
        *next++ = hold.local_waiters;
        *next++ = (jlong)hold.token;
        *next++ = hold.mode;
        *next++ = hold.permits;
        *next++ = hold.of;
    }
    for (size_t i = 0; i < lock.waiter_count; i++) {
        fencelock_waiter_info waiter = {.size = sizeof waiter};
        fencelock_inspection_waiter(inspection, i, &waiter);
        *next++ = waiter.heard_ago_ns;
        *next++ = waiter.silent;
        *next++ = waiter.local_waiters;
        *next++ = waiter.mode;
        *next++ = waiter.permits;
    }
    jlongArray array = (*env)->NewLongArray(env, (jsize)count);
    if (array != NULL) (*env)->SetLongArrayRegion(env, array, 0, (jsize)count, numbers);
    free(numbers);
    return array;
}

static jobjectArray native_inspectionTexts(JNIEnv *env, jclass native, jlong handle) {
    fencelock_inspection *inspection = AS(inspection, handle);
    fencelock_lock_info lock = {.size = sizeof lock};
    if (thrown(env, native, fencelock_inspection_lock(inspection, &lock), NULL)) return NULL;
    size_t count = 2 + 4 * lock.hold_count + 4 * lock.waiter_count;
    fencelock_string *texts = allocate(env, count, sizeof *texts);
    if (texts == NULL) return NULL;
    fencelock_string *next = texts;
    *next++ = lock.name;
    *next++ = lock.owner;
    for (size_t i = 0; i < lock.hold_count; i++) {
        fencelock_hold_info hold = {.size = sizeof hold};
        fencelock_inspection_hold(inspection, i, &hold);
        *next++ = hold.id;
        *next++ = hold.client;
        *next++ = hold.label;
        *next++ = hold.owner;
    }
    for (size_t i = 0; i < lock.waiter_count; i++) {
        fencelock_waiter_info waiter = {.size = sizeof waiter};
        fencelock_inspection_waiter(inspection, i, &waiter);
        *next++ = waiter.id;
        *next++ = waiter.client;
        *next++ = waiter.label;
        *next++ = waiter.owner;
    }
    jobjectArray array = texts_for_java(env, texts, count);
    free(texts);
    return array;
}

static void native_freeInspection(JNIEnv *env, jclass native, jlong inspection) {
    (void)env, (void)native;
    fencelock_inspection_free(AS(inspection, inspection));
}

static const JNINativeMethod methods[] = {
    METHOD(version, "()Ljava/lang/String;"),
    METHOD(liveHandles, "()J"),
    METHOD(connect, "(" BYTES "[J" BYTES BYTES ")J"),
    METHOD(connectAsync, "(" BYTES "[J" BYTES BYTES COMPLETION ")V"),
    METHOD(close, "(JJ)V"),
    METHOD(closeAsync, "(JJ" COMPLETION ")V"),
    METHOD(isClosed, "(J)Z"),
    METHOD(isIdle, "(J)Z"),
    METHOD(freeClient, "(J)V"),
    METHOD(clientId, "(J)" BYTES),
    METHOD(metrics, "(J)" BYTES),
    METHOD(storeName, "(J)" BYTES),
    METHOD(capabilities, "(J)I"),
    METHOD(ping, "(J)J"),
    METHOD(pingAsync, "(J" COMPLETION ")V"),
    METHOD(breakLock, "(J" BYTES "J)J"),
    METHOD(breakLockAsync, "(J" BYTES "J" COMPLETION ")V"),
    METHOD(breakHold, "(J" BYTES "J" BYTES ")J"),
    METHOD(breakHoldAsync, "(J" BYTES "J" BYTES COMPLETION ")V"),
    METHOD(list, "(J" BYTES "J)J"),
    METHOD(listAsync, "(J" BYTES "J" COMPLETION ")V"),
    METHOD(takeNames, "(J)[" BYTES),
    METHOD(freeNames, "(J)V"),
    METHOD(inspect, "(J" BYTES ")J"),
    METHOD(inspectAsync, "(J" BYTES COMPLETION ")V"),
    METHOD(inspectionNumbers, "(J)[J"),
    METHOD(inspectionTexts, "(J)[" BYTES),
    METHOD(freeInspection, "(J)V"),
};
const method_table client_methods = TABLE(methods);
