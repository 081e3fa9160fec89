# frozen_string_literal: true

module Fencelock
  # The end of the process: what is held then is released, so that others need not wait for its lease.
  #
  # Left alone are a client that holds nothing, since some programs do all their work under `at_exit`, and one with
  # which other threads wait or are inside a block: Ruby ends them next, and they leave the queue and release.
  module AtEnd
    # For how many seconds the process waits for stores that do not answer.
    LIMIT = 5

    @watched = ObjectSpace::WeakMap.new
    # Clients by what is under way with them. Each change is one call of Hash's, which no other thread divides.
    @busy = {}.compare_by_identity

    def self.watch(client, native) = @watched[client] = native

    # Runs the block, in which somebody waits for a lock, or is inside it.
    def self.busy(native)
      place = Object.new
      @busy[place] = native
      yield
    ensure
      @busy.delete(place)
    end

    def self.close_all
      busy = @busy.values
      # In a forked child the parent's clients say that they are closed.
      needed = @watched.values.reject { |it| it.is_shut_down || it.is_idle || busy.any? { |other| other.equal?(it) } }
      closing = needed.map { |native| Thread.new { close(native) } }
      limit = now + LIMIT
      closing.each { |thread| thread.join([limit - now, 0].max) }
    end

    def self.close(native)
      native.shut_down_async
    rescue Error
      # Nobody is left who could do anything about it.
    end

    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    private_class_method :close, :now
  end
  private_constant :AtEnd

  at_exit { AtEnd.close_all }
end
