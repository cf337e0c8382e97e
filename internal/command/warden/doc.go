// Package warden implements the processes between baton and a command that baton runs. Package command explains their purpose.
//
// # Why the warden begins before main
//
// A warden is the same program as the daemon, and would therefore first initialise every package that is linked in: drivers, metrics, a
// YAML parser. The warden does not need these packages, and their initialisation costs seven milliseconds of processor time. 200
// commands that are due in the same second would wait for this. Go initialises a package as soon as all of its imports are initialised,
// in the order of the packages' names. So a package with few imports is initialised early, and this package does the whole work of the
// process in its init. Therefore it imports neither fmt nor encoding/json nor golang.org/x/sys.
package warden
