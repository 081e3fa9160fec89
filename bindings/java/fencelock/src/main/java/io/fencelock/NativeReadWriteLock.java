package io.fencelock;

/** The two sides of a lock, as they are acquired without options. */
record NativeReadWriteLock(DistributedLock readLock, DistributedLock writeLock)
        implements DistributedReadWriteLock {
    @Override
    public String name() {
        return writeLock.name();
    }

    @Override
    public String toString() {
        return "DistributedReadWriteLock[" + name() + "]";
    }
}
