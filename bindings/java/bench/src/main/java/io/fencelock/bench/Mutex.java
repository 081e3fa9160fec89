package io.fencelock.bench;

/** A lock of any library. */
interface Mutex {
    void lock();

    void unlock();
}
