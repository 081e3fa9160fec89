# frozen_string_literal: true

require_relative "helper"

on_each_store("Modes") do
  def after_setup
    skip("#{@client.store} has no read-write locks") unless @client.capabilities.shared

    @rw = @client.rw_lock(@lock.name)
  end

  def mailers
    skip("#{@client.store} has no semaphores") unless @client.capabilities.permits

    @mailers ||= @client.semaphore(fresh, 3)
  end

  # As another thread does it.
  def elsewhere = Thread.new { yield }.value

  def test_readers_are_in_together_and_a_writer_is_alone
    Fencelock.connect(@url) do |other|
      far = other.rw_lock(@rw.name)
      @rw.with_read_lock do |first|
        elsewhere { far.with_read_lock(timeout: Helper::BOUND) { |second| assert second.valid? && first.valid? } }
        elsewhere { @rw.with_read_lock(timeout: Helper::BOUND) { |third| assert third.valid? } }
        assert_nil far.writer.try_acquire
        assert_nil(elsewhere { @lock.try_acquire })
        assert_equal [:shared], @client.inspect_lock(@rw.name).holds.map(&:mode).uniq
      end
      read = @rw.with_read_lock(&:token)
      written = far.with_write_lock do |writer|
        assert_nil @rw.reader.try_acquire
        assert_raises(Fencelock::TimedOutError) { @rw.with_read_lock(timeout: 0.02) { flunk } }
        writer.token
      end
      assert_equal [read, written], [read, written, @rw.with_read_lock(&:token)].sort.first(2)
    end
    eventually_empty(@client, @rw.name)
  end

  def test_a_reader_does_not_pass_a_writer_who_waits
    order = []
    first = @rw.reader.acquire
    writer = Thread.new { @rw.with_write_lock { order << :writer } }
    eventually_waiting(@client, 1)
    assert_nil(elsewhere { @rw.reader.try_acquire })
    reader = Thread.new { @rw.with_read_lock { order << :reader } }
    eventually_waiting(@client, 2)
    first.release
    [writer, reader].each(&:join)
    assert_equal %i[writer reader], order
  end

  def test_an_owner_that_reads_cannot_write
    @rw.with_read_lock do |outer|
      told = assert_raises(Fencelock::WouldDeadlockError) { @rw.with_write_lock { flunk } }
      assert_equal 11, told.code
      waits = Thread.new { @rw.with_write_lock(&:token) }
      eventually_waiting(@client, 1)
      # Past the writer who waits.
      assert_equal(outer.token, @rw.with_read_lock(timeout: Helper::BOUND, &:token))
      refute waits.join(0)
      @after = waits
    end
    assert_operator @after.value, :>, 0
    @rw.with_write_lock do |outer|
      assert_equal outer.token, @rw.with_read_lock(&:token)
      assert_equal outer.token, @rw.with_write_lock(&:token)
    end
    eventually_empty(@client, @rw.name)
  end

  def test_sides_are_locks
    @rw.reader.lock
    assert @rw.reader.owned?
    assert(elsewhere { @rw.reader.try_lock.tap { @rw.reader.unlock } })
    refute(elsewhere { @rw.writer.try_lock })
    @rw.reader.unlock
    @rw.writer.synchronize { refute(elsewhere { @rw.reader.try_lock }) }
    alone = @client.rw_lock(@rw.name, reentrant: false)
    alone.with_read_lock { assert_nil alone.writer.try_acquire }
    assert_raises(Fencelock::InvalidArgumentError) { @client.rw_lock("x", owner: "me", reentrant: false) }
  end

  def test_a_reader_is_told_of_its_loss_and_it_alone
    return skip("#{@client.store} has no leases of holds") unless @client.capabilities.leases

    told = Queue.new
    kept = @rw.reader.acquire
    short = elsewhere { @client.rw_lock(@rw.name, lease: 0.2).reader.acquire.on_lost { |reason| told << reason } }
    assert_equal :ended, told.pop
    assert kept.valid?
    assert_raises(Fencelock::LostError) { short.release }
    kept.release
    refute_equal true, @rw.with_write_lock(timeout: Helper::BOUND, &:previous_abandoned)
  end

  def test_a_writer_reads_on_and_a_lone_reader_writes
    return skip("ZooKeeper upgrades nobody") if @client.store == "zookeeper"

    Fencelock.connect(@url) do |other|
      far = other.rw_lock(@rw.name)
      hold = @rw.writer.acquire
      written = hold.token
      reading = Thread.new { far.reader.acquire }
      eventually_waiting(other, 1)
      assert_same hold, hold.downgrade
      beside = reading.value
      assert_operator hold.token, :>, written
      assert_equal [:shared, false], [hold.mode, hold.try_upgrade]
      beside.release
      assert hold.try_upgrade
      assert_operator hold.token, :>, beside.token
      assert_equal [:exclusive, hold.token], [hold.mode, hold.check]
      assert_nil far.reader.try_acquire
      hold.release
      assert_raises(Fencelock::NotHeldError) { hold.downgrade }
      mailers.with_permit { |permit| assert_raises(Fencelock::InvalidArgumentError) { permit.downgrade } }
    end
  end

  def test_never_more_are_in_than_there_are_permits
    name = mailers.name
    Fencelock.connect(@url) do |other|
      inside = most = 0
      counts = Mutex.new
      threads = Array.new(12) do |number|
        Thread.new do
          count = 1 + (number % 2)
          (number % 3 == 0 ? @client : other).semaphore(name, 3).with_permit(count) do
            counts.synchronize { most = [most, inside += count].max }
            Thread.pass
            counts.synchronize { inside -= count }
          end
        end
      end
      threads.each(&:join)
      assert_includes 2..3, most
    end
    eventually_empty(@client, name)
  end

  def test_permits_are_counted_and_their_number_agreed
    two = mailers.acquire(2)
    assert_equal [3, 1], [mailers.permits, mailers.available_permits]
    assert_nil mailers.try_acquire(2)
    one = mailers.try_acquire
    assert_raises(Fencelock::TimedOutError) { mailers.acquire(timeout: 0.02) }
    held = @client.inspect_lock(mailers.name).holds
    assert_equal [[1, :permits], [2, :permits]], held.map { |hold| [hold.permits, hold.mode] }.sort
    other = assert_raises(Fencelock::MisconfiguredError) { @client.semaphore(mailers.name, 5).acquire }
    assert_match(/3.*5|5.*3/, other.message)
    assert_raises(Fencelock::MisconfiguredError) { @client.lock(mailers.name).acquire }
    [-1, 0, 4, 1.5, nil].each { |count| assert_raises(Fencelock::InvalidArgumentError) { mailers.acquire(count) } }
    [-1, 0, 1_000_001, "3"].each { |of| assert_raises(Fencelock::InvalidArgumentError) { @client.semaphore("x", of) } }
    [two, one].each(&:release)
    assert_raises(Fencelock::NotHeldError) { one.release }
    assert_equal 3, mailers.available_permits
    # Nobody has any: another may say how many there are.
    assert_equal(5, @client.semaphore(mailers.name, 5).with_permit(5) { 5 })
  end

  def test_a_semaphore_is_resized_and_followed
    refute mailers.resize(4), "nobody is there"
    five = @client.semaphore(mailers.name, 5)
    mailers.with_permit(3) do
      waiting = Thread.new { five.adopting.acquire }
      eventually_waiting(@client, 1)
      assert mailers.resize(4)
      one = waiting.value
      [five, mailers].each { |each| assert_raises(Fencelock::MisconfiguredError) { each.acquire } }
      assert_nil five.adopting.try_acquire
      assert_equal 0, five.adopting.available_permits
      assert_raises(Fencelock::InvalidArgumentError) { five.adopting.acquire(5) }
      one.release
    end
    # Nobody has any: its own number counts.
    assert_equal 5, five.adopting.with_permit(5) { 5 }
    [0, -1, 1_000_001, "3"].each { |of| assert_raises(Fencelock::InvalidArgumentError) { mailers.resize(of) } }
  end

  def test_one_hold_of_several_is_broken
    one, two = mailers.acquire, mailers.acquire(2)
    seen = @client.inspect_lock(mailers.name).holds.find { |hold| hold.permits == 2 }
    assert_raises(Fencelock::InvalidArgumentError) { @client.break_hold(mailers.name, seen.token, "two") }
    assert_equal 1, @client.break_hold(mailers.name, seen.token, seen.id).ended
    assert_raises(Fencelock::LostError) { two.release }
    assert one.valid?
    one.release
  end

  def test_a_small_request_does_not_pass_a_large_one
    order = []
    two = mailers.acquire(2)
    large = Thread.new { mailers.with_permit(3) { order << 3 } }
    eventually_waiting(@client, 1)
    small = Thread.new { mailers.with_permit { order << 1 } }
    eventually_waiting(@client, 2)
    assert_nil mailers.try_acquire
    two.release
    [large, small].each(&:join)
    assert_equal [3, 1], order
  end

  def test_an_interrupted_wait_leaves_nothing
    @rw.with_write_lock do
      mailers.with_permit(3) do
        waits = [Thread.new { @rw.reader.acquire }, Thread.new { mailers.acquire }]
        eventually_waiting(@client, 2)
        waits.each { |thread| thread.kill.join }
        eventually_waiting(@client, 0)
      end
    end
    [@rw, mailers].each { |each| eventually_empty(@client, each.name) }
  end

  def test_leases_come_back
    return skip("#{@client.store} has no leases of holds") unless @client.capabilities.leases

    short = @client.semaphore(mailers.name, 3, lease: 0.2).acquire(3)
    refute_equal short.token, mailers.with_permit(3, timeout: Helper::BOUND, &:token)
    assert_raises(Fencelock::LostError) { short.release }
    assert_equal 3, mailers.available_permits
  end
end
