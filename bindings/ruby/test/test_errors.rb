# frozen_string_literal: true

require_relative "helper"
require "fiber"

class ErrorsTest < Minitest::Test
  include Helper

  def test_each_has_its_number_and_name
    kinds = Fencelock::FencelockError.constants.map { |name| Fencelock::FencelockError.const_get(name) }
    errors = kinds.map { |kind| kind.new("why") }.sort_by(&:code)
    assert_equal [*1..11, 100], errors.map(&:code)
    assert_equal %i[contended timed_out cancelled unavailable lost not_held misconfigured invalid_argument
                    unsupported closed would_deadlock internal], errors.map(&:kind)
    assert_equal [1, 2, 4], errors.select(&:retryable?).map(&:code)
    assert(errors.all? { |error| error.is_a?(Fencelock::Error) && error.message == "why" })
    assert_equal 100, Fencelock::InternalError.new("why").code
  end

  def test_bad_arguments_are_named
    Fencelock.connect("memory:") do |client|
      assert_raises(Fencelock::InvalidArgumentError) { client.lock("") }
      assert_raises(Fencelock::InvalidArgumentError) { client.lock("x", owner: "") }
      assert_raises(Fencelock::InvalidArgumentError) { client.lock("x", lease: 0.001).acquire }
      assert_raises(Fencelock::InvalidArgumentError) { client.lock("x").acquire(timeout: -1) }
      assert_raises(Fencelock::InvalidArgumentError) { client.lock("x").acquire(timeout: "soon") }
      assert_raises(Fencelock::InvalidArgumentError) { client.lock("x").acquire(timeout: Float::NAN) }
      [-1, -Float::INFINITY, Float::NAN, "soon"].each do |drain|
        assert_raises(Fencelock::InvalidArgumentError) { client.close(drain: drain) }
      end
      [0, -1, 1 << 32, 1.5].each do |limit|
        assert_raises(Fencelock::InvalidArgumentError) { client.list(limit: limit) }
      end
      assert_raises(Fencelock::InvalidArgumentError) { client.break_lock("x", -1) }
      refute client.closed?
      client.lock("x").synchronize do |hold|
        assert_raises(Fencelock::InvalidArgumentError) { hold.extend_lease(Float::INFINITY) }
      end
    end
    assert_raises(Fencelock::InvalidArgumentError) { Fencelock.connect("redis") }
    assert_raises(ArgumentError) { Fencelock.connect("memory:", leese: 3) }
  end

  # Half of a surrogate pair, a broken sequence, bytes of no encoding.
  def test_a_text_that_is_not_utf_8_is_refused
    Fencelock.connect("memory:") do |client|
      ["\xED\xA0\x80", "caf\xC3", "caf\xE9".b, "a\0b", "x" * 513].each do |name|
        assert_raises(Fencelock::InvalidArgumentError) { client.lock(name) }
        assert_raises(Fencelock::InvalidArgumentError) { client.inspect_lock(name) }
        assert_raises(Fencelock::InvalidArgumentError) { client.break_lock(name, 1) }
        assert_raises(Fencelock::InvalidArgumentError) { client.attach(name) }
      end
      half = "\xED\xA0\x80"
      assert_raises(Fencelock::InvalidArgumentError) { client.list(half) }
      assert_raises(Fencelock::InvalidArgumentError) { client.lock("x", owner: half) }
      assert_raises(Fencelock::InvalidArgumentError) { Fencelock.connect("memory:", label: half) }
      assert_raises(Fencelock::InvalidArgumentError) { Fencelock.connect("memory:#{half}") }
      assert_equal "caf\u00E9", client.lock("caf\xE9".dup.force_encoding("ISO-8859-1")).name
    end
  end

  def test_a_store_that_is_not_there_is_unavailable
    port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }
    error = assert_raises(Fencelock::UnavailableError) do
      Fencelock.connect("redis://127.0.0.1:#{port}", connect_timeout: 1)
    end
    assert_equal [4, true], [error.code, error.retryable?]
  end

  def test_a_fiber_is_an_owner
    Fencelock.connect("memory:#{fresh}") do |client|
      lock = client.lock("x")
      lock.synchronize { assert_nil Fiber.new { lock.try_acquire }.resume }
    end
  end
end
