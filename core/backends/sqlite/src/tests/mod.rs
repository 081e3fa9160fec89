mod boot;
mod watch;
