// Drawn by hand on a grid of 16, so that no font has to have them.

const paths = {
  blocked: 'M4 4l8 8M12 4l-8 8',
  asked: 'M5.6 6a2.4 2.4 0 1 1 3.4 2.2c-.7.4-1 .8-1 1.6M8 12.2v.1',
  changed: 'M3 9.5c1.6-4 3.4-4 5-1.5s3.400 2.500 5-1.500',
  stop: 'M5 5h6v6H5z',
  continued: 'M12.500 8a4.500 4.500 0 1 1-1.500-3.400M11.500 2v3h-3',
  recovered: 'M3.500 8a4.500 4.500 0 1 0 1.500-3.400M4.500 2v3h3',
  failed: 'M8 3.500v5.500M8 12v.1',
  allowed: 'M3.500 8.500l3 3 6-7',
  other: 'M8 4l4 4-4 4-4-4z',
  user: 'M8 8a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM3.500 13.500c.4-2.600 2.200-3.800 4.500-3.800s4.100 1.200 4.500 3.800',
  model: 'M8 2.500l1.500 4 4 1.500-4 1.500-1.500 4-1.500-4-4-1.500 4-1.500z',
  call: 'M3 4.500l3.500 3.500L3 11.500M8.500 12H13',
  votes: 'M4 13V8M8 13V3.500M12 13V6',
  end: 'M4 14V2.500h8l-2 3 2 3H4',
  note: 'M4 3h8v10H4zM6.500 6.500h3M6.500 9.500h3',
  search: 'M7 11.500a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9zM10.500 10.500L14 14',
  close: 'M4 4l8 8M12 4l-8 8',
  fork: 'M5 3v6.500a2.500 2.500 0 0 0 2.500 2.500H11M5 3v10M9 10l2.500 2L9 14',
  next: 'M8 3v9M4.500 8.500L8 12l3.500-3.500',
} as const

export type IconName = keyof typeof paths

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  )
}
