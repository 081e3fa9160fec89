/* Calls from the library into Java: what was completed, lost, wanted; and exceptions. */
#include <pthread.h>

#include "fencelock_java.h"

static JavaVM *machine;
static pthread_key_t attached;

/* Ids of methods hold as long as their class; the objects that they are called on keep it. */
static jmethodID failure_method;  /* Native.failure(int, byte[]) */
static jmethodID done_method;     /* Completion.done(int, long, long, byte[]) */
static jmethodID happened_method; /* Notice.happened(int) */

static void detach(void *environment) {
    (void)environment;
    (*machine)->DetachCurrentThread(machine);
}

bool upcalls_init(JavaVM *vm, JNIEnv *env, jclass native) {
    machine = vm;
    if (pthread_key_create(&attached, detach) != 0) {
        jclass error = (*env)->FindClass(env, "java/lang/OutOfMemoryError");
        if (error != NULL) (*env)->ThrowNew(env, error, "no thread-local key is left");
        return false;
    }
    failure_method = (*env)->GetStaticMethodID(env, native, "failure",
                                               "(I[B)Ljava/lang/RuntimeException;");
    if (failure_method == NULL) return false;
    jclass completion = (*env)->FindClass(env, "io/fencelock/Completion");
    if (completion == NULL) return false;
    done_method = (*env)->GetMethodID(env, completion, "done", "(IJJ[B)V");
    if (done_method == NULL) return false;
    jclass notice = (*env)->FindClass(env, "io/fencelock/Notice");
    if (notice == NULL) return false;
    happened_method = (*env)->GetMethodID(env, notice, "happened", "(I)V");
    return happened_method != NULL;
}

/* The environment of this thread, which is attached once and until its end; NULL when the virtual
 * machine is ending. A daemon: it keeps no program from ending. */
static JNIEnv *environment(void) {
    JNIEnv *env = NULL;
    if ((*machine)->GetEnv(machine, (void **)&env, JNI_VERSION_1_8) == JNI_OK) return env;
    JavaVMAttachArgs how = {JNI_VERSION_1_8, (char *)"fencelock-calls", NULL};
    if ((*machine)->AttachCurrentThreadAsDaemon(machine, (void **)&env, &how) != JNI_OK) {
        return NULL;
    }
    pthread_setspecific(attached, env);
    return env;
}

/* Our own Java code throws nothing; an error of the virtual machine must not stay pending here. */
static void swallow(JNIEnv *env) {
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionDescribe(env);
        (*env)->ExceptionClear(env);
    }
}

jobject global_of(JNIEnv *env, jobject object) {
    jobject global = (*env)->NewGlobalRef(env, object);
    if (global == NULL && !(*env)->ExceptionCheck(env)) {
        jclass error = (*env)->FindClass(env, "java/lang/OutOfMemoryError");
        if (error != NULL) (*env)->ThrowNew(env, error, "no global reference is left");
    }
    return global;
}

static jbyteArray message_of(JNIEnv *env, const fencelock_error *error) {
    fencelock_error_info info = {.size = sizeof info};
    if (error == NULL || fencelock_error_get(error, &info) != FENCELOCK_OK) return NULL;
    return bytes_for_java(env, info.message);
}

bool thrown(JNIEnv *env, jclass native, fencelock_status status, fencelock_error *error) {
    if (status == FENCELOCK_OK) return false;
    jbyteArray message;
    if (error != NULL) {
        message = message_of(env, error);
        fencelock_error_free(error);
    } else {
        /* Calls without an error argument fail for one reason only. */
        const char *text = fencelock_status_name(status);
        size_t length = 0;
        while (text[length] != 0) length++;
        message = bytes_for_java(env, (fencelock_string){text, length});
    }
    if (message == NULL) return true;
    jthrowable exception =
        (*env)->CallStaticObjectMethod(env, native, failure_method, (jint)status, message);
    if (!(*env)->ExceptionCheck(env) && exception != NULL) (*env)->Throw(env, exception);
    return true;
}

void deliver(JNIEnv *env, jobject target, const fencelock_completion *completion) {
    jbyteArray message = NULL;
    jlong result = 0;
    if (completion->status == FENCELOCK_OK) {
        if (completion->hold != NULL) result = NUMBER(completion->hold);
        if (completion->client != NULL) result = NUMBER(completion->client);
        if (completion->names != NULL) result = NUMBER(completion->names);
        if (completion->inspection != NULL) result = NUMBER(completion->inspection);
    } else if (completion->error != NULL) {
        message = message_of(env, completion->error);
        fencelock_error_free(completion->error);
        swallow(env);
    }
    jlong number = (jlong)completion->number;
    if (completion->changed_hands != 0) number = -(jlong)completion->changed_hands;
    (*env)->CallVoidMethod(env, target, done_method, (jint)completion->status, result, number,
                           message);
    if (message != NULL) (*env)->DeleteLocalRef(env, message);
}

void on_completion(const fencelock_completion *completion, void *user_data) {
    JNIEnv *env = environment();
    if (env == NULL) return;
    jobject target = (jobject)user_data;
    deliver(env, target, completion);
    swallow(env);
    (*env)->DeleteGlobalRef(env, target);
}

void on_lost(fencelock_loss reason, void *user_data) {
    JNIEnv *env = environment();
    if (env == NULL) return;
    (*env)->CallVoidMethod(env, (jobject)user_data, happened_method, (jint)reason);
    swallow(env);
}

void on_wanted(void *user_data) { on_lost(0, user_data); }

void on_destroy(void *user_data) {
    JNIEnv *env = environment();
    if (env != NULL) (*env)->DeleteGlobalRef(env, (jobject)user_data);
}
