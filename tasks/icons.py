"""Paths of the console's icons, drawn for a box of 16 × 16."""

PATHS = {
    "brand": '<path d="M13 5V2m0 3h-3M13 5A6 6 0 1 0 14 8"/>',
    "tasks": '<path d="M6 4h8M6 8h8M6 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01"/>',
    "letters": '<path d="M2 4h12v9H2zM2 4.5l6 4.5 6-4.5"/>',
    "kinds": '<path d="M2.5 2.5h4.5v4.5H2.5zM9 9h4.5v4.5H9zM9 4.75h4.5M11.25 2.5v4.5"/>'
    '<path d="M2.5 11.25a2.25 2.25 0 1 0 4.5 0 2.25 2.25 0 1 0-4.5 0"/>',
    "workers": '<path d="M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01"/>',
    "audit": '<path d="M4 2h8v12l-2-1.5L8 14l-2-1.5L4 14zM6.5 5.5h3M6.5 8.5h3"/>',
    "help": '<circle cx="8" cy="8" r="6"/><path d="M6.2 6.2a1.9 1.9 0 1 1 2.6 1.7c-.5.3-.8.7-.8 1.3M8 11.6h.01"/>',
    "settings": '<path d="M2 5h7M13 5h1M2 11h1M7 11h7"/><circle cx="11" cy="5" r="2"/><circle cx="5" cy="11" r="2"/>',
    "person": '<circle cx="8" cy="5" r="2.75"/><path d="M2.5 14a5.5 5.5 0 0 1 11 0"/>',
    "dot": '<circle cx="8" cy="8" r="2.5" fill="currentColor"/>',
    "clock": '<circle cx="8" cy="8" r="6"/><path d="M8 4.5V8l2.5 1.5"/>',
    "queue": '<path d="M3 4h10M3 8h10M3 12h6"/>',
    "play": '<path d="M5 3l8 5-8 5z"/>',
    "retry": '<path d="M13 5V2m0 3h-3M13 5A6 6 0 1 0 14 8"/>',
    "question": '<path d="M5.5 5.5a2.5 2.5 0 1 1 3.6 2.2C8.3 8.2 8 8.7 8 9.5M8 12.5h.01"/>',
    "tick": '<path d="M3 8.5l3.5 3.5L13 4.5"/>',
    "cross": '<path d="M4 4l8 8M12 4l-8 8"/>',
    "stop": '<circle cx="8" cy="8" r="6"/><path d="M4 4l8 8"/>',
    "skip": '<path d="M3 3l6 5-6 5zM12.5 3v10"/>',
    "pause": '<path d="M5.5 3v10M10.5 3v10"/>',
    "copy": '<path d="M6 6h8v8H6zM3.5 10H2V2h8v1.5"/>',
    "search": '<circle cx="7" cy="7" r="4.5"/><path d="M10.5 10.5L14 14"/>',
    "left": '<path d="M10 3L5 8l5 5"/>',
    "right": '<path d="M6 3l5 5-5 5"/>',
}
