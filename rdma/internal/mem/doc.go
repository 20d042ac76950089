// Package mem is the only user of unsafe and of golang.org/x/sys below libmalt:
// mapping, alignment, atomic words in mapped memory, futex, memory limits.
package mem
