# frozen_string_literal: true

require_relative "helper"
require "fiber"

class ErrorsTest < Minitest::Test
  include Helper

  def test_each_has_its_number_and_name
    kinds = Fencelock::FencelockError.constants.map { |name| Fencelock::FencelockError.const_get(name) }
    errors = kinds.map { |kind| kind.new("why") }.sort_by(&:code)
    assert_equal [*1..10, 100], errors.map(&:code)
    assert_equal %i[contended timed_out cancelled unavailable lost not_held misconfigured invalid_argument
                    unsupported closed internal], errors.map(&:kind)
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
      client.lock("x").synchronize do |hold|
        assert_raises(Fencelock::InvalidArgumentError) { hold.extend_lease(Float::INFINITY) }
      end
    end
    assert_raises(Fencelock::InvalidArgumentError) { Fencelock.connect("redis") }
    assert_raises(ArgumentError) { Fencelock.connect("memory:", leese: 3) }
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
