/* Loading. */
#include "fencelock_java.h"

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
    (void)reserved;
    JNIEnv *env = NULL;
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) != JNI_OK) return JNI_ERR;
    jclass native = (*env)->FindClass(env, "io/fencelock/Native");
    if (native == NULL) return JNI_ERR;
    const method_table *const tables[] = {&client_methods, &lock_methods, &hold_methods};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if ((*env)->RegisterNatives(env, native, tables[i]->methods, tables[i]->count) != 0) {
            return JNI_ERR;
        }
    }
    return upcalls_init(vm, env, native) ? JNI_VERSION_1_8 : JNI_ERR;
}
