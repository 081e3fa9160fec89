# frozen_string_literal: true

require_relative "helper"

on_each_store("Losses") do
  def test_a_holder_whose_lock_is_broken_is_told
    hold = @lock.acquire
    told = Queue.new
    hold.on_lost { |reason| told << reason }
    seen = @client.inspect_lock(@lock.name).token
    kept = @client.break_lock(@lock.name, seen - 1)
    assert_equal [0, seen], [kept.ended, kept.changed_hands]
    broken = @client.break_lock(@lock.name, seen)
    assert_equal [1, nil], [broken.ended, broken.changed_hands]
    assert_equal :broken, told.pop
    refute hold.valid?
    assert_equal 0.0, hold.remaining
    hold.on_lost { |reason| told << reason }
    assert_equal :broken, told.pop
    lost = assert_raises(Fencelock::LostError) { hold.check }
    assert_equal [5, :lost, false], [lost.code, lost.kind, lost.retryable?]
    assert_raises(Fencelock::Error) { hold.release }
    assert_equal true, @lock.acquire(timeout: Helper::BOUND).tap(&:release).previous_abandoned
  end

  def test_a_block_that_ends_after_the_loss_says_so
    lose = lambda do |hold|
      @client.break_lock(@lock.name, hold.token)
      eventually("it is lost") { !hold.valid? }
    end
    assert_raises(Fencelock::LostError) { @lock.synchronize(&lose) }
    error = assert_raises(RuntimeError) do
      @lock.synchronize do |hold|
        lose.call(hold)
        raise "of the block"
      end
    end
    assert_equal "of the block", error.message
    @lock.lock
    lose.call(@lock.current)
    refute @lock.owned?
    assert_raises(Fencelock::LostError) { @lock.unlock }
  end

  def test_a_callback_may_use_locks
    told = Queue.new
    other = @client.lock(fresh)
    held = other.acquire
    broken = @lock.acquire
    broken.on_lost { told << other.synchronize { :done } }
    @client.break_lock(@lock.name, broken.token)
    eventually_waiting(@client, 1)
    held.release
    assert_equal :done, told.pop
  end

  def test_a_holder_learns_that_another_waits
    Fencelock.connect(@url) do |other|
      hold = @lock.acquire
      told = Queue.new
      hold.on_wanted { told << :wanted }
      thread = Thread.new { other.lock(@lock.name).synchronize { true } }
      assert_equal :wanted, told.pop
      assert hold.wanted?
      hold.release
      assert thread.value
    end
  end

  def test_a_close_tells_holders_and_waiters
    hold = @lock.acquire
    told = Queue.new
    hold.on_lost { |reason| told << reason }
    thread = Thread.new { @lock.acquire }
    eventually_waiting(@client, 1)
    assert_equal false, @client.close
    assert_equal :closed, told.pop
    assert_raises(Fencelock::ClosedError) { thread.value }
    assert @client.closed?
    assert_raises(Fencelock::ClosedError) { @lock.acquire }
  end

  def test_a_close_says_whether_all_was_released
    @lock.synchronize { true }
    assert_equal true, @client.close
    assert_equal true, @client.close
    holder = Fencelock.connect(@url)
    hold = holder.lock(@lock.name).acquire
    assert_equal false, holder.close(drain: 0.02)
    assert holder.closed?
    assert_raises(Fencelock::LostError) { hold.release }
  end

  def test_a_drain_lets_what_is_held_finish
    hold = @lock.acquire(timeout: Float::INFINITY)
    drained = Thread.new { @client.close(drain: Float::INFINITY) }
    eventually("new ones are turned away") do
      @client.lock(fresh).synchronize { false }
    rescue Fencelock::ClosedError
      true
    end
    hold.release
    assert_equal true, drained.value
  end

  # Each on a thread of its own, which begins when the next news may have come already.
  def test_each_holder_hears_its_own_news
    heard = Queue.new
    locks = Array.new(40) { |number| [number, @client.lock(fresh)] }
    kept = locks.map { |number, lock| lock.acquire.on_lost { |reason| heard << [number, reason] } }
    gone = Array.new(40) { @client.lock(fresh).acquire.on_lost { |reason| heard << [:released, reason] } }
    gone.each(&:release)
    @client.close
    said = Array.new(40) { heard.pop }
    assert_equal locks.map { |number, _| [number, :closed] }, said.sort
    refute kept.any?(&:valid?)
  end

  # In a method, for a block of it would keep what else the method has.
  def watched(lock, told) = lock.acquire.on_lost(&told).on_wanted(&told) && nil

  def test_a_hold_that_is_forgotten_is_released
    # On a stack of its own, of which nothing is left.
    [-> { @lock.acquire && nil }, -> { watched(@lock, proc {}) }].each do |forget|
      Thread.new(&forget).join
      eventually("it is collected, and released") do
        GC.start
        !@lock.locked?
      end
    end
  end
end

# What needs a server, or a process, of its own.
class LossTest < Minitest::Test
  include Helper

  def test_the_death_of_a_server_is_told
    server = RedisServer.new
    client = Fencelock.connect(server.url, lease: 1, request_timeout: 1)
    told = Queue.new
    hold = client.lock("x").acquire.on_lost { |reason| told << reason }
    server.close
    assert_equal :not_renewed, told.pop
    refute hold.valid?
    error = assert_raises(Fencelock::Error) { client.lock("x").acquire(timeout: 1) }
    assert_includes [2, 4], error.code
    assert error.retryable?
  ensure
    client&.close
    server&.close
  end

  # What a program prints.
  def ruby(url, source)
    library = File.expand_path("../lib", __dir__)
    IO.popen([RbConfig.ruby, "-I", library, "-e", source, url], &:read)
  end

  def test_a_process_that_ends_releases_what_it_holds
    url = url_of("sqlite")
    kept = ruby(url, <<~'CODE')
      require "fencelock"
      client = Fencelock.connect(ARGV[0], lease: 600)
      $hold = client.lock("x").acquire
      client.lock("y").lock
      at_exit { puts "#{$hold.valid?} #{client.lock("z").synchronize { true }}" }
    CODE
    assert_equal "true true\n", kept
    Fencelock.connect(url) do |client|
      # What the process did with them may be half done.
      %w[x y].each { |name| assert client.lock(name).acquire(timeout: Helper::BOUND).previous_abandoned, name }
    end
  end

  def test_a_child_that_ends_leaves_its_parent_what_it_holds
    assert_equal "0 true\n", ruby(url_of("sqlite"), <<~'CODE')
      require "fencelock"
      hold = Fencelock.connect(ARGV[0]).lock("x").acquire
      Process.wait(fork { nil })
      puts "#{$?.exitstatus} #{hold.valid?}"
    CODE
  end

  # Whose work is all done under at_exit.
  def test_an_idle_client_outlives_the_hook
    assert_equal "true\n", ruby(url_of("sqlite"), <<~'CODE')
      at_exit { puts $client.lock("x").synchronize { true } }
      require "fencelock"
      $client = Fencelock.connect(ARGV[0])
    CODE
  end

  def test_a_forked_child_connects_anew
    Fencelock.connect(url_of("sqlite")) do |client|
      lock = client.lock("x")
      hold = lock.acquire
      child = fork do
        lock.try_acquire
        exit!(1)
      rescue Fencelock::ClosedError
        exit!(hold.valid? ? 2 : 0)
      end
      assert_equal 0, Process.wait2(child)[1].exitstatus
      assert hold.valid?
    end
  end
end
