package io.fencelock;

/**
 * What the client's store can do.
 *
 * @param store its name: {@code memory}, {@code sqlite}, {@code redis} and so on
 * @param processes whether several processes may share it
 * @param durable whether locks survive the end of every client
 * @param owners whether an explicit owner re-enters from another client
 * @param leases whether explicit leases end at the store by themselves
 * @param abandoned whether {@link Hold#previousAbandoned} is known
 * @param paths whether names of locks are paths: slashes separate, no part is empty, and a lock does
 *     not lie below another
 * @param shared whether it has read-write locks, see {@link FencelockClient#readWriteLock}
 * @param permits whether it has semaphores, see {@link FencelockClient#semaphore}
 */
public record Capabilities(
        String store,
        boolean processes,
        boolean durable,
        boolean owners,
        boolean leases,
        boolean abandoned,
        boolean paths,
        boolean shared,
        boolean permits) {}
