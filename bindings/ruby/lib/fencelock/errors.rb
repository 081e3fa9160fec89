# frozen_string_literal: true

module Fencelock
  # Every error of this library: `rescue Fencelock::Error`. Each kind is a class of its own:
  # ContendedError, TimedOutError, CancelledError, UnavailableError, LostError, NotHeldError,
  # MisconfiguredError, InvalidArgumentError, UnsupportedError, ClosedError, WouldDeadlockError.
  module Error
    # Its number, the same in every language.
    def code
      facts.code
    end

    # Its name: :contended, :timed_out and so on.
    def kind
      facts.name.to_sym
    end

    # Whether the same call may succeed later without anybody changing anything.
    def retryable?
      facts.retryable
    end

    private

    def facts
      name = self.class.name.split("::").last.delete_suffix("Error")
      constant = name.gsub(/(?<=[a-z])(?=[A-Z])/, "_").upcase
      Fencelock.error_facts(ErrorKind.const_get(constant))
    end
  end

  FencelockError.constants.each do |name|
    kind = FencelockError.const_get(name)
    kind.include(Error)
    const_set("#{name}Error", kind) unless const_defined?("#{name}Error", false)
  end
  # A panic in the native library.
  InternalError.include(Error)
end
