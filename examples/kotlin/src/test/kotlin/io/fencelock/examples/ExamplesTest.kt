package io.fencelock.examples

import io.fencelock.examples.sale.sale
import java.nio.file.Files
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

internal class ExamplesTest {
    private val url = "sqlite:${Files.createTempDirectory("fl-sale").resolve("locks.db")}"

    @Test fun `the first lock`() = main(arrayOf(url))

    @Test
    fun `the sale needs its lock`() = runBlocking(Dispatchers.Default) {
        assertEquals(30, sale(url, 30, locked = true))
        assertTrue(sale(url, 30, locked = false) > 30)
    }
}
