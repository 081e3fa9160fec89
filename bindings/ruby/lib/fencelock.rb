# frozen_string_literal: true

# A distributed lock: a Mutex or Monitor across processes and machines. See docs/ruby.md.
#
#   client = Fencelock.connect("redis://localhost")
#   client.lock("stock/coupon-7").synchronize do |hold|
#     ledger.write(hold.token, "one sold")
#   end
module Fencelock
  # The generated code reads the native library's place from here.
  def self.library
    ENV.fetch("FENCELOCK_LIBRARY") do
      found = Dir[File.join(__dir__, "fencelock", "native", "libfencelock_uniffi.{so,dylib}")].first
      found || raise(LoadError, "the native library is missing: run scripts/uniffi generate")
    end
  end
end

# The generated code waits for its pipes with it.
require "io/wait"
Fencelock.library
require_relative "fencelock/native/generated"
require_relative "fencelock/errors"
require_relative "fencelock/spans"
require_relative "fencelock/text"
require_relative "fencelock/info"
require_relative "fencelock/pending"
require_relative "fencelock/news"
require_relative "fencelock/entered"
require_relative "fencelock/hold"
require_relative "fencelock/at_end"
require_relative "fencelock/lock"
require_relative "fencelock/rw_lock"
require_relative "fencelock/semaphore"
require_relative "fencelock/client"
