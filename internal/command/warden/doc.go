// Package warden is the process between baton and a command that it runs. Package
// command explains its purpose.
//
// # Why it begins before main
//
// A warden is the same program as the daemon, and as such would first initialise
// every package that is linked in: drivers, metrics, a YAML parser. It does not need
// them, and they cost seven milliseconds of processor time. 200 commands that are due in
// the same second would wait for that. Go initialises a package as soon
// as those that it imports are, the first by name first; so a package that imports
// next to nothing comes early, and this one does the whole work of the process in its
// init. That is why it imports neither fmt nor encoding/json nor golang.org/x/sys.
package warden
