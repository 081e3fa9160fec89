# frozen_string_literal: true

require_relative "helper"
require "timeout"

on_each_store("Interrupts") do
  def test_a_wait_that_is_interrupted_leaves_the_queue
    hold = @lock.acquire
    thread = Thread.new { @lock.acquire }
    eventually_waiting(@client, 1)
    thread.raise(ArgumentError, "enough")
    assert_raises(ArgumentError) { thread.value }
    assert_equal 0, waiting(@client)
    killed = Thread.new { @lock.synchronize { raise "it must not be entered" } }
    eventually_waiting(@client, 1)
    killed.kill.join
    assert_equal 0, waiting(@client)
    other = @client.lock(@lock.name, reentrant: false)
    assert_raises(Timeout::Error) { Timeout.timeout(0.02) { other.acquire } }
    assert_equal 0, waiting(@client)
    hold.release
    eventually_empty(@client, @lock.name)
  end

  def test_whenever_it_is_interrupted_nothing_is_left
    random = Random.new
    lock = @client.lock(@lock.name, reentrant: false)
    100.times do |round|
      hold = round % 3 == 0 ? nil : lock.acquire(timeout: Helper::BOUND)
      threads = Array.new(2) { Thread.new { lock.synchronize { Thread.pass } } }
      threads << Thread.new { hold&.release }
      sleep(random.rand(0.002))
      threads.first(2).each { |thread| round.even? ? thread.kill : thread.raise(ArgumentError, "enough") }
      threads.each { |thread| thread.join rescue nil } # rubocop:disable Style/RescueModifier
    end
    lock.acquire(timeout: Helper::BOUND).release
    eventually_empty(@client, @lock.name)
    assert_equal 0, waiting(@client)
  end

  # An interrupt that comes at the end of a block, before its end puts interrupts off.
  def test_an_interrupt_just_before_the_release_does_not_keep_it
    rw = @client.rw_lock("#{@lock.name}/rw") if @client.capabilities.shared
    seats = @client.semaphore("#{@lock.name}/seats", 2) if @client.capabilities.permits
    [[@lock, :synchronize], [rw, :with_read_lock], [rw, :with_write_lock], [seats, :with_permit]].each do |each, enter|
      next unless each

      held = nil
      assert_raises(FloatDomainError) do
        interrupted_once { |arm| each.public_send(enter) { |hold| arm.call(held = hold) } }
      end
      refute held.valid?, enter
      eventually_empty(@client, each.name)
    end
  end

  def interrupted_once
    original = Thread.method(:handle_interrupt)
    victim, armed = Thread.current, false
    Thread.define_singleton_method(:handle_interrupt) do |mask, &block|
      if armed && Thread.current == victim
        armed = false
        raise FloatDomainError, "an interrupt"
      end
      original.call(mask, &block)
    end
    yield ->(_) { armed = true }
  ensure
    Thread.define_singleton_method(:handle_interrupt, original)
  end

  def test_others_run_while_one_waits
    hold = @lock.acquire
    thread = Thread.new { @lock.synchronize { true } }
    eventually_waiting(@client, 1)
    assert_equal 4950, (0...100).sum
    hold.release
    assert thread.value
  end
end
