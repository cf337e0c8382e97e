// Package spec has what is known of a source without it: which kinds there are, which
// settings each has, and how the keys that it reads are written in a configuration.
package spec
