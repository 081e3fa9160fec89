# frozen_string_literal: true

# The first lock: ruby -I bindings/ruby/lib examples/ruby/first_lock.rb [URL]
require "fencelock"

Fencelock.connect(ARGV.fetch(0, "memory:")) do |client|
  lock = client.lock("stock/coupon-7")
  lock.synchronize(timeout: 5) do |hold|
    puts "the last holder was lost at its work" if hold.previous_abandoned
    puts "one sold, under token #{hold.token}"
  end
rescue Fencelock::TimedOutError => e
  puts "sold out of patience: #{e.message}"
end
