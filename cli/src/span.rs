//! Spans of time, as people write and read them.

use std::time::Duration;

/// Reads `10`, `1.5` (seconds, as `timeout` and `flock` do) or `10s`, `1m 30s`, `250ms`.
pub fn parse(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds)
            .map_err(|_| "a span cannot be negative or without end".to_owned());
    }
    humantime::parse_duration(text)
        .map_err(|_| "expected a span such as 10s, 1m30s, 250ms, or plain seconds".to_owned())
}

/// A short text: three digits at the most, and a unit.
pub fn show(span: Duration) -> String {
    let micros = span.as_micros();
    let seconds = span.as_secs();
    if micros < 1_000 {
        format!("{micros} µs")
    } else if micros < 10_000 {
        format!("{:.1} ms", micros as f64 / 1e3)
    } else if micros < 1_000_000 {
        format!("{} ms", micros / 1_000)
    } else if seconds < 10 {
        format!("{:.1} s", micros as f64 / 1e6)
    } else if seconds < 120 {
        format!("{seconds} s")
    } else if seconds < 2 * 3600 {
        format!("{} min {} s", seconds / 60, seconds % 60)
    } else {
        format!("{} h {} min", seconds / 3600, seconds / 60 % 60)
    }
}

#[cfg(test)]
mod tests;
