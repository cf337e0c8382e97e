// Package ground gives test processes directories of their own, and removes what they leave
// behind: also after a SIGKILL, a time-out or Ctrl-C. A run of the whole suite (test/suite) has
// one ground for all its packages, where they share what is slow to make: built programs and
// the empty data directories of databases.
package ground
