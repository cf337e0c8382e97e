// Package spec describes sources for the configuration: their kinds, the settings of each kind, and the patterns of their keys. It needs no
// Redis. Package source contains the parts that need Redis.
//
//	Kind        a kind of source, with the form of its key, the meaning of its records and its own settings
//	ExpandKey   returns the keys of a range, such as "views:[0-3]"
//	RowKey      a pattern with one capture, such as "user:<id>"
//	KeyPattern  a pattern with one or more captures, such as "stock:<shop>:<item>"
//
// An invalid key or pattern is an error of the configuration, so the daemon does not start with it. A key that matches a pattern has only
// one interpretation, and its captures give the same key again.
package spec
