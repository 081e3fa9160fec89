# frozen_string_literal: true

require_relative "helper"
require_relative "scheduler"

# How it behaves in what Ruby's processes do: end, fork, handle signals, and schedule fibers.
on_each_store("Processes") do
  # Runs a program of its own with `client` and `lock`, and gives what it says; it must end by itself.
  def run_program(code)
    code = <<~RUBY
      require "fencelock"
      client = Fencelock.connect(#{@url.dump})
      lock = client.lock(#{@lock.name.dump})
      #{code}
    RUBY
    reader, writer = IO.pipe
    pid = spawn("ruby", "-I", File.join(__dir__, "../lib"), "-e", code, out: writer, err: writer)
    writer.close
    said = Thread.new { reader.read }
    eventually("the program ends") { Process.wait(pid, Process::WNOHANG) }
    assert $?.success?, said.value
    said.value
  ensure
    Process.kill(:KILL, pid) unless $?&.pid == pid
    reader.close
  end

  def test_a_process_ends_while_threads_wait
    assert_equal "end\n", run_program(<<~RUBY)
      hold = lock.acquire
      waiters = Array.new(3) { Thread.new { client.lock(lock.name).synchronize { exit!(3) } } }
      sleep 0.001 until client.metrics[/^fencelock_waiting (\\d+)/, 1] == "3"
      hold.on_lost { exit!(4) }
      puts "end"
    RUBY
  end

  def test_a_process_that_ends_releases_what_threads_have
    said = run_program(<<~RUBY)
      inside = Queue.new
      Thread.new { lock.synchronize { inside << :in && sleep } }
      inside.pop
      puts "end"
    RUBY
    assert_equal "end\n", said
    # Nobody closed its client: the end of the thread released.
    refute @lock.locked?
  end

  def test_a_process_closes_its_client_at_its_exit
    assert_equal "end\nlost\nclosed\n", run_program(<<~RUBY)
      $stdout.sync = true
      told = Queue.new
      at_exit do
        client.close
        puts told.pop, "closed"
      end
      lock.lock.current.on_lost { told << "lost" }
      puts "end"
    RUBY
  end

  def test_a_forked_child_uses_a_client_of_its_own
    return if %w[memory zookeeper].include?(@client.store)

    hold = @lock.acquire
    wanted = Queue.new
    hold.on_wanted { wanted << true }
    child = fork do
      own = Fencelock.connect(@url)
      mine = own.lock(@lock.name).acquire(timeout: Helper::BOUND)
      told = Queue.new
      mine.on_wanted { told << :wanted }
      waiter = Thread.new { Fencelock.connect(@url) { |other| other.lock(@lock.name).acquire(timeout: Helper::BOUND).release } }
      first = told.pop
      mine.release
      waiter.join
      own.lock("mine").lock.current.on_lost { |reason| told << reason }
      own.close
      exit!([first, told.pop] == %i[wanted closed] ? 0 : 1)
    rescue Exception => e # rubocop:disable Lint/RescueException
      warn e.full_message
      exit!(2)
    end
    assert wanted.pop
    hold.release
    eventually("the child ends") { Process.wait(child, Process::WNOHANG) }
    assert_equal 0, $?.exitstatus
  end

  def test_a_signals_handler_may_lock_and_close
    said = run_program(<<~RUBY)
      done = []
      trap("USR1") { lock.synchronize { |hold| done << hold.valid? } }
      trap("USR2") { done << client.close }
      Process.kill(:USR1, $$)
      sleep 0.001 until done.size == 1
      Process.kill(:USR2, $$)
      sleep 0.001 until done.size == 2
      p done
    RUBY
    assert_equal "[true, true]\n", said
  end

  def test_a_program_that_ends_at_any_threads_error_goes_on
    said = run_program(<<~RUBY)
      Thread.abort_on_exception = true
      lock.lock
      p Thread.new { [lock.try_lock, lock.try_acquire] }.value
    RUBY
    assert_equal "[false, nil]\n", said
  end

  def test_a_killed_thread_does_not_live_on_for_a_loss
    hold = nil
    thread = Thread.new do
      @lock.synchronize { |held| (hold = held) && sleep }
    rescue Fencelock::Error
      sleep
    end
    eventually("it holds") { hold }
    @client.break_lock(@lock.name, hold.token)
    eventually("it is lost") { !hold.valid? }
    thread.kill
    eventually("it ends") { !thread.alive? }
  end

  def test_a_condition_variable_does_not_sleep_with_the_lock
    @lock.synchronize do
      assert_raises(Fencelock::UnsupportedError) { ConditionVariable.new.wait(@lock, 1) }
    end
  end

  def test_fibers_of_a_scheduler_exclude_each_other
    inside = 0
    order = []
    Thread.new do
      Fiber.set_scheduler(Scheduler.new)
      3.times do |number|
        Fiber.schedule do
          @client.lock(@lock.name).synchronize do
            raise "two are inside" unless (inside += 1) == 1

            sleep 0.01
            order << number
            inside -= 1
          end
        end
      end
      Fiber.schedule { order << :another }
    end.join
    assert_equal [:another, 0, 1, 2], order
  end
end
