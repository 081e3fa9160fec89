# frozen_string_literal: true

# A flash sale: several processes with several threads each sell the same coupons. Without a lock too many
# are sold; with one, as many as there are.
#
#   ruby -I bindings/ruby/lib examples/ruby/flash_sale.rb [URL]
#
# The URL is that of a store that processes share; without one, a SQLite file.
require "fencelock"
require "tmpdir"

PROCESSES = 3
THREADS = 3
COUPONS = 40

# The coupons that are left, in a file that knows nothing of locks, but refuses an old token.
class Stock
  def initialize(folder)
    @file = File.join(folder, "stock")
    @sales = File.join(folder, "sales")
  end

  def fill
    File.write(@file, "#{COUPONS} 0")
    File.write(@sales, "")
    self
  end

  def sold = File.size(@sales)

  # Sells one: looks, thinks, writes. False when nothing is left.
  def sell(token)
    left, newest = File.read(@file).split.map(&:to_i)
    return false if left.zero?
    raise "token #{token} comes after #{newest}" if token < newest

    sleep 0.001
    # In one step, so that nobody reads half of it.
    fresh = "#{@file}.#{Process.pid}.#{Thread.current.object_id}"
    File.write(fresh, "#{left - 1} #{token}")
    File.rename(fresh, @file)
    File.write(@sales, "x", mode: "a")
    true
  end
end

def seller(url, stock, locked)
  Fencelock.connect(url) do |client|
    lock = client.lock("ruby/flash-sale")
    threads = Array.new(THREADS) do
      Thread.new do
        nil while locked ? lock.synchronize { |hold| stock.sell(hold.token) } : stock.sell(0)
      end
    end
    threads.each(&:join)
  end
end

def sale(url, folder, locked)
  stock = Stock.new(folder).fill
  sellers = Array.new(PROCESSES) do
    fork { seller(url, stock, locked) }
  end
  raise "a seller failed" unless sellers.map { |seller| Process.wait2(seller)[1].success? }.all?

  stock.sold
end

Dir.mktmpdir do |folder|
  url = ARGV.fetch(0) { "sqlite:#{File.join(folder, 'locks.db')}" }
  without = sale(url, folder, false)
  with = sale(url, folder, true)
  puts "without a lock #{without} of #{COUPONS} sold, with one #{with}"
  exit(with == COUPONS && without > COUPONS ? 0 : 1)
end
