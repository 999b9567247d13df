//! Memory of this process, not of the kernel inside it: the kernel takes the names `malloc` and `free` for itself.

use std::{
    alloc::{GlobalAlloc, Layout},
    ffi::c_void,
    ptr,
};

unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, bytes: usize) -> *mut c_void;
    fn __libc_realloc(at: *mut c_void, bytes: usize) -> *mut c_void;
    fn __libc_free(at: *mut c_void);
}

/// Alignment of all memory from the C library.
const ALIGNED: usize = 16;

/// The heap of the C library.
struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

// SAFETY: the C library's functions keep the contract of an allocator.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and any power of two are allowed.
        unsafe {
            match layout.align() <= ALIGNED {
                true => __libc_malloc(layout.size()).cast(),
                false => __libc_memalign(layout.align(), layout.size()).cast(),
            }
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, _: Layout) {
        // SAFETY: `at` came from `alloc` or `realloc`.
        unsafe { __libc_free(at.cast()) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if layout.align() <= ALIGNED {
            // SAFETY: `at` came from `alloc` or `realloc`.
            return unsafe { __libc_realloc(at.cast(), bytes).cast() };
        }
        // SAFETY: the caller grants that `bytes` rounded up to the alignment fits an isize; `at` holds
        // `layout.size()` bytes and `new`, unless null, `bytes`.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !new.is_null() {
                ptr::copy_nonoverlapping(at, new, bytes.min(layout.size()));
                self.dealloc(at, layout);
            }
            new
        }
    }
}
