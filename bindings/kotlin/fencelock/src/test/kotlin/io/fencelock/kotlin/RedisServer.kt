package io.fencelock.kotlin

import java.io.File
import java.io.IOException
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.TimeUnit

/** A real server as a process on a free port, ended with this virtual machine at the latest. */
internal class RedisServer private constructor(private val process: Process, private val port: Int) :
    AutoCloseable {
    val url: String
        get() = "redis://127.0.0.1:$port"

    override fun close() {
        // It has nothing to save.
        process.destroyForcibly()
        process.waitFor(30, TimeUnit.SECONDS)
    }

    /** From now on it keeps its connections, and answers nothing. */
    fun stop(): Unit = signal("STOP")

    /** Lets it go on. */
    fun resume(): Unit = signal("CONT")

    private fun signal(name: String) {
        check(ProcessBuilder("kill", "-$name", "${process.pid()}").start().waitFor() == 0) { "no $name" }
    }

    private fun answers(): Boolean =
        try {
            Socket(InetAddress.getLoopbackAddress(), port).use { socket ->
                socket.soTimeout = 5000
                socket.getOutputStream().write("PING\r\n".toByteArray())
                String(socket.getInputStream().readNBytes(5)) == "+PONG"
            }
        } catch (_: IOException) {
            false
        }

    companion object {
        private val program = System.getenv("REDIS_SERVER") ?: "redis-server"

        /** The server that the tests share. */
        val shared: RedisServer by lazy {
            start().also { Runtime.getRuntime().addShutdownHook(Thread(it::close)) }
        }

        fun start(): RedisServer {
            val folder = Files.createTempDirectory("fl-redis")
            repeat(5) {
                val port = ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { it.localPort }
                val server = RedisServer(run(port, folder), port)
                // Another program may have taken the port meanwhile.
                until("redis-server answers") { server.answers() || !server.process.isAlive }
                if (server.process.isAlive) return server
            }
            error(Files.readString(folder.resolve("log")))
        }

        private fun run(port: Int, folder: Path): Process {
            val where = listOf("--port", "$port", "--bind", "127.0.0.1", "--dir", "$folder")
            return ProcessBuilder(listOf(program) + where + listOf("--save", "", "--appendonly", "no"))
                .redirectErrorStream(true)
                .redirectOutput(File("$folder/log"))
                .start()
        }
    }
}
