/* The native methods of a lock and a semaphore, and of what waits for them. */
#include "fencelock_java.h"

static jlong native_lock(JNIEnv *env, jclass native, jlong client, jbyteArray name) {
    bytes text;
    fencelock_lock *lock = NULL;
    if (bytes_open(env, &text, name)) {
        fencelock_error *error = NULL;
        fencelock_status status =
            fencelock_client_lock(AS(client, client), text.data, text.length, &lock, &error);
        thrown(env, native, status, error);
    }
    bytes_close(&text);
    return NUMBER(lock);
}

/* The side of a read-write lock that reads. */
static jlong native_readLock(JNIEnv *env, jclass native, jlong client, jbyteArray name) {
    bytes text;
    fencelock_rwlock *rwlock = NULL;
    fencelock_lock *lock = NULL;
    if (bytes_open(env, &text, name)) {
        fencelock_error *error = NULL;
        fencelock_status status =
            fencelock_client_rwlock(AS(client, client), text.data, text.length, &rwlock, &error);
        if (status == FENCELOCK_OK) status = fencelock_rwlock_reader(rwlock, &lock, &error);
        fencelock_rwlock_free(rwlock);
        thrown(env, native, status, error);
    }
    bytes_close(&text);
    return NUMBER(lock);
}

static jlong native_semaphore(JNIEnv *env, jclass native, jlong client, jbyteArray name,
                              jint permits) {
    bytes text;
    fencelock_semaphore *semaphore = NULL;
    if (bytes_open(env, &text, name)) {
        fencelock_error *error = NULL;
        fencelock_status status =
            fencelock_client_semaphore(AS(client, client), text.data, text.length,
                                       (uint32_t)permits, &semaphore, &error);
        thrown(env, native, status, error);
    }
    bytes_close(&text);
    return NUMBER(semaphore);
}

static jlong native_adopting(JNIEnv *env, jclass native, jlong semaphore) {
    fencelock_semaphore *adopting = NULL;
    fencelock_error *error = NULL;
    fencelock_status status =
        fencelock_semaphore_adopting(AS(semaphore, semaphore), &adopting, &error);
    thrown(env, native, status, error);
    return NUMBER(adopting);
}

static void native_freeSemaphore(JNIEnv *env, jclass native, jlong semaphore) {
    (void)env, (void)native;
    fencelock_semaphore_free(AS(semaphore, semaphore));
}

static jint native_availablePermits(JNIEnv *env, jclass native, jlong semaphore) {
    uint32_t available = 0;
    fencelock_error *error = NULL;
    fencelock_status status =
        fencelock_semaphore_available_permits(AS(semaphore, semaphore), &available, &error);
    thrown(env, native, status, error);
    return (jint)available;
}

static void native_availablePermitsAsync(JNIEnv *env, jclass native, jlong semaphore,
                                         jobject completion) {
    fencelock_error *error = NULL;
    jobject target = global_of(env, completion);
    if (target == NULL) return;
    fencelock_status status = fencelock_semaphore_available_permits_async(
        AS(semaphore, semaphore), on_completion, target, &error);
    if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
}

static jboolean native_resize(JNIEnv *env, jclass native, jlong semaphore, jint permits) {
    bool resized = false;
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_semaphore_resize(AS(semaphore, semaphore),
                                                         (uint32_t)permits, &resized, &error);
    thrown(env, native, status, error);
    return resized;
}

static void native_resizeAsync(JNIEnv *env, jclass native, jlong semaphore, jint permits,
                               jobject completion) {
    fencelock_error *error = NULL;
    jobject target = global_of(env, completion);
    if (target == NULL) return;
    fencelock_status status = fencelock_semaphore_resize_async(
        AS(semaphore, semaphore), (uint32_t)permits, on_completion, target, &error);
    if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
}

static void native_freeLock(JNIEnv *env, jclass native, jlong lock) {
    (void)env, (void)native;
    fencelock_lock_free(AS(lock, lock));
}

static jboolean native_isLocked(JNIEnv *env, jclass native, jlong lock) {
    bool locked = false;
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_lock_is_locked(AS(lock, lock), &locked, &error);
    thrown(env, native, status, error);
    return locked;
}

static void native_isLockedAsync(JNIEnv *env, jclass native, jlong lock, jobject completion) {
    fencelock_error *error = NULL;
    jobject target = global_of(env, completion);
    if (target == NULL) return;
    fencelock_status status =
        fencelock_lock_is_locked_async(AS(lock, lock), on_completion, target, &error);
    if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
}

/* The owner as an acquire needs it; `owner` stays open for as long as the options are used. */
static fencelock_acquire_options options_of(jint kind, jlong number, const bytes *owner) {
    fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    options.owner_kind = (uint32_t)kind;
    options.owner_number = (uint64_t)number;
    options.owner = owner->data;
    options.owner_length = owner->length;
    return options;
}

/* The end of starting what can be cancelled: the operation; or 0 and what came of it at once. */
static jlong started(JNIEnv *env, jclass native, fencelock_status status, fencelock_error *error,
                     const fencelock_completion *now, fencelock_operation *operation,
                     jobject completion, jobject target) {
    if (thrown(env, native, status, error)) {
        (*env)->DeleteGlobalRef(env, target);
        return 0;
    }
    if (now->ended) {
        (*env)->DeleteGlobalRef(env, target);
        deliver(env, completion, now);
        return 0;
    }
    return NUMBER(operation);
}

static jlong native_acquire(JNIEnv *env, jclass native, jlong lock, jlong timeout, jlong lease,
                            jlong max_hold, jint kind, jlong number, jbyteArray owner,
                            jlong block, jobject completion) {
    bytes text;
    if (!bytes_open(env, &text, owner)) return 0;
    fencelock_acquire_options options = options_of(kind, number, &text);
    options.timeout_ns = timeout;
    options.lease_ns = lease;
    options.max_hold_ns = max_hold;
    options.block_ns = block;
    fencelock_completion now = FENCELOCK_COMPLETION_INIT;
    fencelock_operation *operation = NULL;
    fencelock_error *error = NULL;
    jobject target = global_of(env, completion);
    if (target == NULL) {
        bytes_close(&text);
        return 0;
    }
    fencelock_status status = fencelock_lock_acquire_async(
        AS(lock, lock), &options, &now, on_completion, target, &operation, &error);
    bytes_close(&text);
    return started(env, native, status, error, &now, operation, completion, target);
}

static jlong native_acquirePermits(JNIEnv *env, jclass native, jlong semaphore, jint count,
                                   jlong timeout, jlong lease, jlong max_hold, jlong block,
                                   jobject completion) {
    fencelock_acquire_options options = FENCELOCK_ACQUIRE_OPTIONS_INIT;
    options.owner_kind = FENCELOCK_OWNER_FRESH;
    options.timeout_ns = timeout;
    options.lease_ns = lease;
    options.max_hold_ns = max_hold;
    options.block_ns = block;
    fencelock_completion now = FENCELOCK_COMPLETION_INIT;
    fencelock_operation *operation = NULL;
    fencelock_error *error = NULL;
    jobject target = global_of(env, completion);
    if (target == NULL) return 0;
    fencelock_status status =
        fencelock_semaphore_acquire_async(AS(semaphore, semaphore), (uint32_t)count, &options,
                                          &now, on_completion, target, &operation, &error);
    return started(env, native, status, error, &now, operation, completion, target);
}

static jlong native_holdCount(JNIEnv *env, jclass native, jlong lock, jint kind, jlong number,
                              jbyteArray owner) {
    bytes text;
    if (!bytes_open(env, &text, owner)) return 0;
    fencelock_acquire_options options = options_of(kind, number, &text);
    uint64_t count = 0;
    fencelock_status status = fencelock_lock_hold_count(AS(lock, lock), &options, &count);
    bytes_close(&text);
    thrown(env, native, status, NULL);
    return (jlong)count;
}

static jlong native_attach(JNIEnv *env, jclass native, jlong client, jbyteArray ticket) {
    bytes text;
    fencelock_hold *hold = NULL;
    if (bytes_open(env, &text, ticket)) {
        fencelock_error *error = NULL;
        fencelock_status status =
            fencelock_client_attach(AS(client, client), text.data, text.length, &hold, &error);
        thrown(env, native, status, error);
    }
    bytes_close(&text);
    return NUMBER(hold);
}

static jlong native_attachAsync(JNIEnv *env, jclass native, jlong client, jbyteArray ticket,
                                jobject completion) {
    bytes text;
    if (!bytes_open(env, &text, ticket)) return 0;
    fencelock_completion now = FENCELOCK_COMPLETION_INIT;
    fencelock_operation *operation = NULL;
    fencelock_error *error = NULL;
    jobject target = global_of(env, completion);
    if (target == NULL) {
        bytes_close(&text);
        return 0;
    }
    fencelock_status status =
        fencelock_client_attach_async(AS(client, client), text.data, text.length, &now,
                                      on_completion, target, &operation, &error);
    bytes_close(&text);
    return started(env, native, status, error, &now, operation, completion, target);
}

static void native_cancelOperation(JNIEnv *env, jclass native, jlong operation) {
    (void)env, (void)native;
    fencelock_operation_cancel(AS(operation, operation));
}

static void native_freeOperation(JNIEnv *env, jclass native, jlong operation) {
    (void)env, (void)native;
    fencelock_operation_free(AS(operation, operation));
}

static const JNINativeMethod methods[] = {
    METHOD(lock, "(J" BYTES ")J"),
    METHOD(readLock, "(J" BYTES ")J"),
    METHOD(freeLock, "(J)V"),
    METHOD(semaphore, "(J" BYTES "I)J"),
    METHOD(freeSemaphore, "(J)V"),
    METHOD(adopting, "(J)J"),
    METHOD(resize, "(JI)Z"),
    METHOD(resizeAsync, "(JI" COMPLETION ")V"),
    METHOD(availablePermits, "(J)I"),
    METHOD(availablePermitsAsync, "(J" COMPLETION ")V"),
    METHOD(acquirePermits, "(JIJJJJ" COMPLETION ")J"),
    METHOD(isLocked, "(J)Z"),
    METHOD(isLockedAsync, "(J" COMPLETION ")V"),
    METHOD(acquire, "(JJJJIJ" BYTES "J" COMPLETION ")J"),
    METHOD(holdCount, "(JIJ" BYTES ")J"),
    METHOD(attach, "(J" BYTES ")J"),
    METHOD(attachAsync, "(J" BYTES COMPLETION ")J"),
    METHOD(cancelOperation, "(J)V"),
    METHOD(freeOperation, "(J)V"),
};
const method_table lock_methods = TABLE(methods);
