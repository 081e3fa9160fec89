package io.fencelock.kotlin

import java.nio.file.Path
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread
import kotlin.system.exitProcess
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** What the end of a virtual machine does to its holds. */
internal class ShutdownTest {
    private fun run(way: String, name: String): String {
        val java = Path.of(System.getProperty("java.home"), "bin", "java").toString()
        val classes = System.getProperty("java.class.path")
        val command = listOf(java, "-cp", classes, Ending::class.java.name, way, RedisServer.shared.url, name)
        val process = ProcessBuilder(command).redirectErrorStream(true).start()
        try {
            val said = process.inputStream.reader().readText()
            assertTrue(process.waitFor(60, TimeUnit.SECONDS), said)
            assertEquals(3, process.exitValue(), said)
            return said
        } finally {
            process.destroyForcibly()
        }
    }

    @Test
    fun `another hook is served, and what is held is released`() = withClient(RedisServer.shared.url) { client ->
        val lock = client.lock(fresh())
        lock.withLock {}
        assertTrue("served" in run("serve", lock.name))
        assertEquals(Abandoned.NO, lock.withLock(timeout = BOUND) { it.previousAbandoned })
    }

    @Test
    fun `what is held after the grace is free for others at once`() = withClient(RedisServer.shared.url) { client ->
        val lock = client.lock(fresh())
        lock.withLock {}
        run("keep", lock.name)
        // Long before the lease of ten minutes is over.
        assertEquals(Abandoned.YES, lock.withLock(timeout = BOUND) { it.previousAbandoned })
    }

    /** The other virtual machine: holds the lock and exits. */
    internal object Ending {
        @JvmStatic
        fun main(args: Array<String>): Unit = runBlocking(Dispatchers.Default) {
            val (way, url, name) = args
            val grace = if (way == "keep") 100.milliseconds else BOUND
            val client = Client.connect(url, lease = 10.minutes, shutdownGrace = grace)
            val hold = client.lock(name).acquire()
            if (way == "serve") {
                val hooked = CountDownLatch(1)
                Runtime.getRuntime().addShutdownHook(
                    thread(start = false) {
                        repeat(100) { runBlocking { client.lock("$name/other").withLock { Thread.sleep(1) } } }
                        println("served")
                        runBlocking { hold.release() }
                        hooked.countDown()
                    }
                )
            }
            exitProcess(3)
        }
    }
}
