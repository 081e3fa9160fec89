# frozen_string_literal: true

require "fiber"
require "io/wait"

# The least that a Fiber.scheduler does: fibers of one thread that go on when time has passed, when there is
# something to read, or when another thread says so.
class Scheduler
  def initialize
    @readers = {}
    @sleepers = {}
    @blocked = {}
    @unblocked = Queue.new
    @bell, @ring = IO.pipe
  end

  def fiber(&block) = Fiber.new(blocking: false, &block).tap(&:resume)

  def io_wait(io, events, _timeout)
    @readers[io] = Fiber.current
    Fiber.yield
    events
  end

  def kernel_sleep(seconds) = block(nil, seconds)

  def block(_on, seconds = nil)
    if seconds
      @sleepers[Fiber.current] = now + seconds
    else
      @blocked[Fiber.current] = true
    end
    Fiber.yield
  end

  def unblock(_on, fiber)
    @unblocked << fiber
    @ring.write(".")
  end

  def close
    turn until [@readers, @sleepers, @blocked].all?(&:empty?)
  end

  private

  def turn
    next_one = @sleepers.values.min
    readable, = IO.select([@bell, *@readers.keys], nil, nil, next_one && [next_one - now, 0].max)
    @bell.read_nonblock(100) if readable&.delete(@bell)
    readable&.each { |io| @readers.delete(io).resume }
    @unblocked.size.times { @unblocked.pop.tap { |fiber| @blocked.delete(fiber) }.resume }
    due = @sleepers.select { |_, time| time <= now }.keys
    due.each { |fiber| @sleepers.delete(fiber) && fiber.resume }
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
