// Package ground gives each test process its own directories, and removes what is left of these directories, also after a SIGKILL, a
// time-out or Ctrl-C. In a run of the whole suite (test/suite) all packages share the files that are slow to make: built programs and the
// empty data directories of databases.
package ground
