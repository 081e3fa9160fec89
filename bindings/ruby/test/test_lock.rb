# frozen_string_literal: true

require_relative "helper"

on_each_store("Locks") do
  def test_acquires_and_releases
    refute @lock.locked?
    first = @lock.acquire
    assert first.valid?
    assert_operator first.remaining, :>, 1
    assert_equal [first.token, @lock.name], [first.check, first.name]
    assert @lock.locked?
    assert_nil Thread.new { @lock.try_acquire }.value
    assert_nil first.release
    second = @lock.try_acquire
    assert_operator second.token, :>, first.token
    assert_equal false, second.previous_abandoned
    second.release
    refute @lock.locked?
    assert_raises(Fencelock::NotHeldError) { second.release }
  end

  def test_synchronize_gives_what_the_block_gives
    assert_equal 7, @lock.synchronize { 7 }
    assert_equal(3, @lock.synchronize { break 3 })
    refute @lock.locked?
    error = assert_raises(RuntimeError) { @lock.synchronize { raise "of the block" } }
    assert_equal "of the block", error.message
    @lock.synchronize(&:release)
    refute @lock.locked?
  end

  def test_threads_exclude_each_other
    Fencelock.connect(@url) do |other|
      inside = count = last = 0
      threads = Array.new(20) do |number|
        Thread.new do
          lock = (number.even? ? @client : other).lock(@lock.name)
          3.times do
            lock.synchronize do |hold|
              inside += 1
              raise "#{inside} are inside" unless inside == 1
              raise "a token comes late" unless hold.token > last

              last = hold.token
              before = count
              Thread.pass
              count = before + 1
              inside -= 1
            end
          end
        end
      end
      threads.each(&:join)
      assert_equal 60, count
      eventually_empty(@client, @lock.name)
    end
  end

  def test_waiters_are_served_in_their_order
    hold = @lock.acquire
    order = []
    threads = Array.new(4) do |number|
      Thread.new { @lock.synchronize { order << number } }.tap { eventually_waiting(@client, number + 1) }
    end
    hold.release
    threads.each(&:join)
    assert_equal [0, 1, 2, 3], order
  end

  def test_is_a_mutex
    assert_same @lock, @lock.lock
    assert @lock.owned?
    refute Thread.new { @lock.owned? }.value
    refute Thread.new { @lock.try_lock }.value
    assert_raises(Fencelock::NotHeldError) { Thread.new { @lock.unlock }.value }
    assert_equal @lock.current.token, @lock.lock.current.token
    assert_same @lock, @lock.unlock
    assert @lock.owned?
    @lock.unlock
    refute @lock.owned?
    refute @lock.locked?
    assert @lock.try_lock
    @lock.unlock
    assert_raises(Fencelock::NotHeldError) { @lock.unlock }
  end

  def test_a_bounded_wait_ends
    @lock.synchronize do
      late = assert_raises(Fencelock::TimedOutError) { Thread.new { @lock.acquire(timeout: 0.02) }.value }
      assert late.retryable?
    end
    assert @lock.synchronize(timeout: Helper::BOUND) { true }
  end

  def test_owners
    @lock.synchronize do |outer|
      @lock.synchronize { |inner| assert_equal [true, outer.token], [inner.reentry?, inner.token] }
      assert_nil @client.lock(@lock.name, reentrant: false).try_acquire
      assert_nil @client.lock(@lock.name, owner: fresh).try_acquire
    end
    shared = @client.lock(@lock.name, owner: fresh)
    shared.synchronize { |hold| assert_equal hold.token, Thread.new { shared.synchronize(&:token) }.value }
    assert_raises(Fencelock::InvalidArgumentError) { @client.lock("x", owner: "me", reentrant: false) }
  end

  def test_a_ticket_goes_on_with_a_hold
    hold = @client.lock(@lock.name, owner: fresh).acquire
    joined = @client.attach(hold.ticket)
    assert_equal hold.token, joined.token
    hold.release
    assert joined.valid?
    joined.release
    refute @lock.locked?
    assert_raises(Fencelock::InvalidArgumentError) { @client.attach("no ticket") }
    @lock.synchronize { |own| assert_raises(Fencelock::InvalidArgumentError) { own.ticket } }
  end

  def test_a_lease_ends_and_can_be_made_longer
    return skip("#{@client.store} has no leases of holds") unless @client.capabilities.leases

    @client.lock(@lock.name, lease: 30).synchronize do |hold|
      assert_same hold, hold.extend_lease(60)
      assert_operator hold.remaining, :>, 40
    end
    told = Queue.new
    short = @client.lock(@lock.name, lease: 0.2).acquire.on_lost { |reason| told << reason }
    assert_equal :ended, told.pop
    refute short.valid?
    assert_equal true, @lock.acquire(timeout: Helper::BOUND).tap(&:release).previous_abandoned
  end

  def test_is_looked_at
    assert_nil @client.inspect_lock(@lock.name)
    Fencelock.connect(@url, label: "the other") do |other|
      hold = @lock.acquire
      thread = Thread.new { other.lock(@lock.name).synchronize(&:token) }
      eventually("a waiter is seen") { @client.inspect_lock(@lock.name).waiters.size == 1 }
      info = @client.inspect_lock(@lock.name)
      assert_equal [[@client.id], [other.id]], [info.holds.map(&:client_id), info.waiters.map(&:client_id)]
      assert_equal "the other", info.waiters.first.label
      assert_operator info.holds.first.expires_in, :>, 0
      assert_operator info.waiters.first.heard_ago, :<, Helper::BOUND
      assert_equal [@lock.name], @client.list(@lock.name)
      within = Array.new(2) { Thread.new { @client.lock(@lock.name).synchronize(&:token) } }
      eventually("they wait, too") { @client.inspect_lock(@lock.name).waiting == 3 }
      assert_equal 2, @client.inspect_lock(@lock.name).holds.first.local_waiters
      hold.release
      assert_operator thread.value, :>, hold.token
      within.each { |each| assert_operator each.value, :>, hold.token }
    end
    assert_operator @client.ping.year, :>, 2000
  end
end

# On one store.
class ManyLocksTest < Minitest::Test
  include Helper

  def test_locks_leave_nothing_with_their_thread
    Fencelock.connect(url_of("memory")) do |client|
      locks = ObjectSpace::WeakMap.new
      use = lambda do
        lock = client.lock(fresh)
        locks[lock] = true
        refute lock.owned?
        lock.lock.lock.unlock
        assert lock.owned?
        lock.unlock
        assert lock.try_lock
        lock.unlock
        assert_nil lock.current
        assert_raises(Fencelock::NotHeldError) { lock.unlock }
      end
      use.call
      before = Thread.current.keys
      100.times { use.call }
      assert_equal before, Thread.current.keys
      # One or another may still be seen on the stack.
      eventually("they are collected") do
        GC.start
        locks.size < 50
      end
    end
  end
end
