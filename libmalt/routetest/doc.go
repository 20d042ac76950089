// Package routetest is what every way of carrying vectors has to do, as tests: those of
// package libmalt and of each engine run it over ranks of their own.
package routetest
