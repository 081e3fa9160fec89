/* The native methods of a hold. */
#include "fencelock_java.h"

static jbyteArray native_holdName(JNIEnv *env, jclass native, jlong hold) {
    fencelock_string name = {NULL, 0};
    if (thrown(env, native, fencelock_hold_name(AS(hold, hold), &name), NULL)) return NULL;
    return bytes_for_java(env, name);
}

/* The three that are asked of a hold which another thread may be releasing: then the answer is that
 * of a hold that has ended. */
static jboolean native_isValid(JNIEnv *env, jclass native, jlong hold) {
    (void)env, (void)native;
    bool valid = false;
    return fencelock_hold_is_valid(AS(hold, hold), &valid) == FENCELOCK_OK && valid;
}

static jlong native_remaining(JNIEnv *env, jclass native, jlong hold) {
    (void)env, (void)native;
    int64_t left = 0;
    return fencelock_hold_remaining(AS(hold, hold), &left) == FENCELOCK_OK ? left : 0;
}

static jboolean native_isWanted(JNIEnv *env, jclass native, jlong hold) {
    (void)env, (void)native;
    bool wanted = false;
    return fencelock_hold_is_wanted(AS(hold, hold), &wanted) == FENCELOCK_OK && wanted;
}

static jlong native_token(JNIEnv *env, jclass native, jlong hold) {
    uint64_t token = 0;
    thrown(env, native, fencelock_hold_token(AS(hold, hold), &token), NULL);
    return (jlong)token;
}

static jlong native_check(JNIEnv *env, jclass native, jlong hold) {
    uint64_t token = 0;
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_hold_check(AS(hold, hold), &token, &error);
    thrown(env, native, status, error);
    return (jlong)token;
}

static jboolean native_isReentry(JNIEnv *env, jclass native, jlong hold) {
    bool reentry = false;
    thrown(env, native, fencelock_hold_is_reentry(AS(hold, hold), &reentry), NULL);
    return reentry;
}

static jint native_previousAbandoned(JNIEnv *env, jclass native, jlong hold) {
    fencelock_abandoned abandoned = FENCELOCK_ABANDONED_UNKNOWN;
    thrown(env, native, fencelock_hold_previous_abandoned(AS(hold, hold), &abandoned), NULL);
    return abandoned;
}

static jbyteArray native_ticket(JNIEnv *env, jclass native, jlong hold) {
    fencelock_text *text = NULL;
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_hold_ticket(AS(hold, hold), &text, &error);
    if (thrown(env, native, status, error)) return NULL;
    fencelock_string string = {NULL, 0};
    fencelock_text_get(text, &string);
    jbyteArray array = bytes_for_java(env, string);
    fencelock_text_free(text);
    return array;
}

static void native_extend(JNIEnv *env, jclass native, jlong hold, jlong lease) {
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_hold_extend(AS(hold, hold), lease, &error);
    thrown(env, native, status, error);
}

/* The end of starting what cannot be cancelled. */
static void begun(JNIEnv *env, jclass native, fencelock_status status, fencelock_error *error,
                  const fencelock_completion *now, jobject completion, jobject target) {
    if (thrown(env, native, status, error)) {
        (*env)->DeleteGlobalRef(env, target);
    } else if (now->ended) {
        (*env)->DeleteGlobalRef(env, target);
        deliver(env, completion, now);
    }
}

static void native_extendAsync(JNIEnv *env, jclass native, jlong hold, jlong lease,
                               jobject completion) {
    fencelock_completion now = FENCELOCK_COMPLETION_INIT;
    fencelock_error *error = NULL;
    jobject target = global_of(env, completion);
    if (target == NULL) return;
    fencelock_status status =
        fencelock_hold_extend_async(AS(hold, hold), lease, &now, on_completion, target, &error);
    begun(env, native, status, error, &now, completion, target);
}

static void native_release(JNIEnv *env, jclass native, jlong hold) {
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_hold_release(AS(hold, hold), &error);
    thrown(env, native, status, error);
}

static void native_releaseAsync(JNIEnv *env, jclass native, jlong hold, jobject completion) {
    fencelock_completion now = FENCELOCK_COMPLETION_INIT;
    fencelock_error *error = NULL;
    jobject target = global_of(env, completion);
    if (target == NULL) {
        /* Java has let go of it: then in the background. */
        fencelock_hold_free(AS(hold, hold));
        return;
    }
    fencelock_status status =
        fencelock_hold_release_async(AS(hold, hold), &now, on_completion, target, &error);
    begun(env, native, status, error, &now, completion, target);
}

static void native_freeHold(JNIEnv *env, jclass native, jlong hold) {
    (void)env, (void)native;
    fencelock_hold_free(AS(hold, hold));
}

static void native_onLost(JNIEnv *env, jclass native, jlong hold, jobject notice) {
    fencelock_error *error = NULL;
    jobject target = global_of(env, notice);
    if (target == NULL) return;
    fencelock_status status =
        fencelock_hold_on_lost(AS(hold, hold), on_lost, target, on_destroy, &error);
    if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
}

static void native_onWanted(JNIEnv *env, jclass native, jlong hold, jobject notice) {
    fencelock_error *error = NULL;
    jobject target = global_of(env, notice);
    if (target == NULL) return;
    fencelock_status status =
        fencelock_hold_on_wanted(AS(hold, hold), on_wanted, target, on_destroy, &error);
    if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
}

#define NOTICE "Lio/fencelock/Notice;"

static jint native_mode(JNIEnv *env, jclass native, jlong hold) {
    fencelock_mode mode = FENCELOCK_MODE_EXCLUSIVE;
    thrown(env, native, fencelock_hold_mode(AS(hold, hold), &mode), NULL);
    return mode;
}

static void native_downgrade(JNIEnv *env, jclass native, jlong hold) {
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_hold_downgrade(AS(hold, hold), &error);
    thrown(env, native, status, error);
}

static void native_downgradeAsync(JNIEnv *env, jclass native, jlong hold, jobject completion) {
    fencelock_error *error = NULL;
    jobject target = global_of(env, completion);
    if (target == NULL) return;
    fencelock_status status =
        fencelock_hold_downgrade_async(AS(hold, hold), NULL, on_completion, target, &error);
    if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
}

static jboolean native_tryUpgrade(JNIEnv *env, jclass native, jlong hold) {
    fencelock_error *error = NULL;
    fencelock_status status = fencelock_hold_try_upgrade(AS(hold, hold), &error);
    if (status == FENCELOCK_CONTENDED) {
        fencelock_error_free(error);
        return false;
    }
    return !thrown(env, native, status, error);
}

static void native_tryUpgradeAsync(JNIEnv *env, jclass native, jlong hold, jobject completion) {
    fencelock_error *error = NULL;
    jobject target = global_of(env, completion);
    if (target == NULL) return;
    fencelock_status status =
        fencelock_hold_try_upgrade_async(AS(hold, hold), NULL, on_completion, target, &error);
    if (thrown(env, native, status, error)) (*env)->DeleteGlobalRef(env, target);
}

static const JNINativeMethod methods[] = {
    METHOD(mode, "(J)I"),
    METHOD(downgrade, "(J)V"),
    METHOD(downgradeAsync, "(J" COMPLETION ")V"),
    METHOD(tryUpgrade, "(J)Z"),
    METHOD(tryUpgradeAsync, "(J" COMPLETION ")V"),
    METHOD(holdName, "(J)" BYTES),
    METHOD(isValid, "(J)Z"),
    METHOD(token, "(J)J"),
    METHOD(check, "(J)J"),
    METHOD(remaining, "(J)J"),
    METHOD(isReentry, "(J)Z"),
    METHOD(isWanted, "(J)Z"),
    METHOD(previousAbandoned, "(J)I"),
    METHOD(ticket, "(J)" BYTES),
    METHOD(extend, "(JJ)V"),
    METHOD(extendAsync, "(JJ" COMPLETION ")V"),
    METHOD(release, "(J)V"),
    METHOD(releaseAsync, "(J" COMPLETION ")V"),
    METHOD(freeHold, "(J)V"),
    METHOD(onLost, "(J" NOTICE ")V"),
    METHOD(onWanted, "(J" NOTICE ")V"),
};
const method_table hold_methods = TABLE(methods);
