# frozen_string_literal: true

module Fencelock
  # The holds of Lock#lock, by thread or fiber, as Thread#[] is. A lock is in it only while it is locked: a server
  # may make one for each request.
  module Entered
    module_function

    def push(lock, hold)
      all = Thread.current[:fencelock_entered] ||= {}.compare_by_identity
      (all[lock] ||= []).push(hold)
    end

    def last(lock) = Thread.current[:fencelock_entered]&.[](lock)&.last

    # Nil when there is none.
    def pop(lock)
      all = Thread.current[:fencelock_entered]
      holds = all&.[](lock) or return
      hold = holds.pop
      all.delete(lock) if holds.empty?
      hold
    end
  end
  private_constant :Entered
end
