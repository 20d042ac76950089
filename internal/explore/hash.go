package explore

import (
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
	"slices"
)

// mix combines two numbers into one that looks random.
func mix(h, v uint64) uint64 {
	h = (h ^ v) + 0x9e3779b97f4a7c15 + h<<6 + h>>2
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

var seed = maphash.MakeSeed()

func hashString(s string) uint64 { return maphash.String(seed, s) }

// Ignore is state of which some fields, by name, do not matter: those that are
// always written before they are read.
type Ignore struct {
	State  any
	Fields []string
}

// deep is a hash of everything that v holds or points to.
func (x *Exec) deep(v any) uint64 {
	var ignored []string
	if i, ok := v.(Ignore); ok {
		v, ignored = i.State, i.Fields
	}
	return x.walk(reflect.ValueOf(v), ignored, 0)
}

func (x *Exec) walk(v reflect.Value, ignored []string, depth int) uint64 {
	if depth > 20 {
		panic("explore: the state given to At is a ring of pointers, or deeper than 20")
	}
	switch v.Kind() {
	case reflect.Invalid, reflect.Func, reflect.UnsafePointer:
		return 1
	case reflect.Bool:
		if v.Bool() {
			return 3
		}
		return 2
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return uint64(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return v.Uint()
	case reflect.Float32, reflect.Float64:
		return math.Float64bits(v.Float())
	case reflect.String:
		return hashString(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 4
		}
		return mix(5, x.walk(v.Elem(), ignored, depth+1))
	case reflect.Slice:
		if y, off := at(v.Pointer()); y == x && v.Len() > 0 {
			return mix(uint64(off), uint64(v.Len()))
		}
		fallthrough
	case reflect.Array:
		h := mix(6, uint64(v.Len()))
		for i := range v.Len() {
			h = mix(h, x.walk(v.Index(i), ignored, depth+1))
		}
		return h
	case reflect.Struct:
		h := uint64(7)
		for i := range v.NumField() {
			if len(ignored) == 0 || !slices.Contains(ignored, v.Type().Field(i).Name) {
				h = mix(h, x.walk(v.Field(i), ignored, depth+1))
			}
		}
		return h
	case reflect.Map: // in any order
		h := mix(8, uint64(v.Len()))
		for it := v.MapRange(); it.Next(); {
			h += mix(x.walk(it.Key(), ignored, depth+1), x.walk(it.Value(), ignored, depth+1))
		}
		return h
	}
	panic(fmt.Sprintf("explore: a %v cannot be part of the state given to At", v.Type()))
}
