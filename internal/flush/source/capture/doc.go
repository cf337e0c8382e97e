// Package capture reads what has changed in a Redis without any help of the application: the replication
// stream says which keys, and their present values are read. See DESIGN.md beside it.
package capture
