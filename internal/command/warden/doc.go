// Package warden is the process that stands between baton and a command that it
// runs: package command says what for.
//
// # Why it begins before main
//
// A warden is the same program as the daemon, and as such would first initialise
// every package that is linked in: drivers, metrics, a YAML parser, seven
// milliseconds of processor time of which it needs nothing. With 200 commands due in
// the same second that is what they would wait for. Go initialises a package as soon
// as those that it imports are, the first by name first; so a package that imports
// next to nothing comes early, and this one does the whole work of the process in its
// init. That is why it imports neither fmt nor encoding/json nor golang.org/x/sys.
package warden
